// Package deploy carries the files that an operator installs, so that the programs can print them.
package deploy

import _ "embed"

// ReferenceConfig is the reference configuration: every key, documented, with an example value.
//
//go:embed pncd.yaml
var ReferenceConfig []byte
