package lab

import (
	"errors"
	"strings"
)

// splitWords splits a command line as a POSIX shell does its words, without expansions: spaces,
// single and double quotes, and backslashes. containerlab runs exec and cmd without a shell too.
func splitWords(s string) ([]string, error) {
	var (
		words []string
		word  strings.Builder
		in    bool
		quote rune
		esc   bool
	)
	for _, r := range s {
		switch {
		case esc:
			if quote == '"' && r != '"' && r != '\\' && r != '$' && r != '`' {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
			esc = false
		case r == '\\' && quote != '\'':
			esc, in = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteRune(r)
			in = true
		}
	}
	if quote != 0 || esc {
		return nil, errors.New("a quote or a backslash is not closed")
	}
	if in {
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, errors.New("the command is empty")
	}
	return words, nil
}
