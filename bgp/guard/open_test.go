package guard

type openCase struct {
	name string
	msg  []byte
}

var openCases = []openCase{}
