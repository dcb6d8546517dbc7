// Package version says which build of the program is running.
//
// The release is set by the linker when a release is built:
//
//	go build -ldflags "-X pncd/internal/version.version=v1.2.3" ./cmd/pncd
//
// Everything else comes from the build information that the Go toolchain embeds. It is not for the
// version of a protocol or of the API: that is in the protobuf package's name.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// version is set with -ldflags -X; empty in a development build.
var version string

// Info is the identity of a build. A field that the build does not know is empty.
type Info struct {
	Version  string `json:"version"`            // the release, or "devel"
	Commit   string `json:"commit,omitempty"`   // the full hash of the source's commit
	Date     string `json:"date,omitempty"`     // the commit's time, RFC 3339
	Modified bool   `json:"modified,omitempty"` // built from a working tree with changes
	Go       string `json:"go"`                 // the toolchain
	Platform string `json:"platform"`           // GOOS/GOARCH
}

var read = sync.OnceValue(func() Info {
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		bi = &debug.BuildInfo{}
	}
	return fromBuild(version, bi)
})

// Get returns the identity of the running program.
func Get() Info { return read() }

// fromBuild combines the linker's release with what the toolchain embedded. The module's own version
// counts only when there is no release, and "(devel)" says nothing.
func fromBuild(release string, bi *debug.BuildInfo) Info {
	v := Info{
		Version:  release,
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	for _, s := range bi.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Date = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	if v.Version == "" && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		v.Version = bi.Main.Version
	}
	if v.Version == "" {
		v.Version = "devel"
	}
	return v
}

// String returns one line, as in "v1.2.3 (commit 0123456789ab, 2026-01-02T03:04:05Z, go1.26, linux/amd64)".
func (v Info) String() string {
	var parts []string
	if v.Commit != "" {
		c := "commit " + v.Commit[:min(12, len(v.Commit))]
		if v.Modified {
			c += " modified"
		}
		parts = append(parts, c)
	}
	if v.Date != "" {
		parts = append(parts, v.Date)
	}
	parts = append(parts, v.Go, v.Platform)
	return fmt.Sprintf("%s (%s)", v.Version, strings.Join(parts, ", "))
}
