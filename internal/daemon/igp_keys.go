package daemon

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"pncd/internal/config"
)

// secret is that of a key, which may be in a file; where says which of a list the key is.
func secret(k config.Key, where string, i int) (string, error) {
	if k.PasswordFile == "" {
		return k.Password, nil
	}
	password, err := firstLine(k.PasswordFile)
	if err != nil {
		return "", &config.Error{Problems: []config.Problem{{Key: fmt.Sprintf("%s: password_file of key %d", where, i), Rule: err.Error()}}}
	}
	return password, nil
}

// firstLine is what a password file holds.
func firstLine(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line == "" {
		return "", errors.New("the first line is empty")
	}
	return line, nil
}
