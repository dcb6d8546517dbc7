package version

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestReleaseOfTheLinkerWinsOverTheModuleVersion(t *testing.T) {
	tests := []struct {
		name, release, module, want string
	}{
		{"release set", "v1.2.3", "v0.0.0-2026", "v1.2.3"},
		{"module version only", "", "v1.0.1", "v1.0.1"},
		{"development build", "", "(devel)", "devel"},
		{"no build information", "", "", "devel"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := fromBuild(tt.release, &debug.BuildInfo{Main: debug.Module{Version: tt.module}})
			if got.Version != tt.want {
				t.Errorf("Version = %q, want %q", got.Version, tt.want)
			}
		})
	}
}

func TestStringNamesCommitAndModifiedTree(t *testing.T) {
	v := fromBuild("v1.2.3", &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
		{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		{Key: "vcs.modified", Value: "true"},
	}})
	const want = "v1.2.3 (commit 0123456789ab modified, 2026-01-02T03:04:05Z, "
	if got := v.String(); !strings.HasPrefix(got, want) {
		t.Errorf("String() = %q, want it to begin with %q", got, want)
	}
}

func TestGetKnowsItsToolchainAndPlatform(t *testing.T) {
	v := Get()
	if v.Version == "" || !strings.HasPrefix(v.Go, "go") || !strings.Contains(v.Platform, "/") {
		t.Errorf("Get() = %+v, want version, toolchain and platform", v)
	}
}
