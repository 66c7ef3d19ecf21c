package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo says which build this is.
type versionInfo struct {
	Version  string `json:"version"`            // of the module, "(devel)" in a checkout
	Revision string `json:"revision,omitempty"` // of the repository, if it was built there
	Go       string `json:"go"`
	System   string `json:"system"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if a.json {
				return a.writeJSON(v)
			}
			fmt.Fprintln(a.stdout, v)
			return nil
		},
	}
}

func readVersion() versionInfo {
	v := versionInfo{Version: "(devel)", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if build.Main.Version != "" {
		v.Version = build.Main.Version
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}

func (v versionInfo) String() string {
	s := "softrnic " + v.Version
	if v.Revision != "" {
		s += " " + v.Revision
	}
	return s + ", " + v.Go + " " + v.System
}
