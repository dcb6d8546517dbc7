package guard

// updateCases are named by the rule that they hold.
var updateCases = []updateCase{
	{name: "plain", attrs: aBase, nlri: nlri10, same: true},
}
