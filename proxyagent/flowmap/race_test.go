//go:build race

package flowmap

const raceEnabled = true
