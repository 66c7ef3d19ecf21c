package cmdline

import (
	"runtime"
	"runtime/debug"
)

// A Version identifies a build.
type Version struct {
	Version  string `json:"version"`            // of the module, "(devel)" if it is not known
	Revision string `json:"revision,omitempty"` // of the repository, if it was built there
	Modified bool   `json:"modified,omitempty"` // the build has changes that are not in Revision
	Go       string `json:"go"`
	System   string `json:"system"` // GOOS/GOARCH
}

// ReadVersion returns the version of this program.
func ReadVersion() Version {
	v := Version{Version: "(devel)", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if build.Main.Version != "" {
		v.Version = build.Main.Version
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String returns the version in one line, without the name of the program.
func (v Version) String() string {
	s := v.Version
	if v.Revision != "" {
		s += " " + v.Revision
	}
	if v.Modified {
		s += " (modified)"
	}
	return s + ", " + v.Go + " " + v.System
}
