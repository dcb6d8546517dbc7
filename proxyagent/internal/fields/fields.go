// Package fields holds what the configurations of the two agents share: zero means the default, and no number
// is negative.
package fields

import "fmt"

// Default sets a zero value to its default.
func Default[T comparable](v *T, d T) {
	if *v == *new(T) {
		*v = d
	}
}

// Field is a number of a configuration, by its name.
type Field struct {
	Name  string
	Value int64
}

// NotNegative says which number is negative; agent begins the error.
func NotNegative(agent string, all ...Field) error {
	for _, f := range all {
		if f.Value < 0 {
			return fmt.Errorf("%s: %s %d: must not be negative", agent, f.Name, f.Value)
		}
	}
	return nil
}
