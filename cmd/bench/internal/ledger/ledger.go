// Package ledger has the last recorded run of each experiment, and the page that shows each
// statement about the papers' figures beside its outcome in that run.
//
// The directory recorded has the figures of the runs, and not their outcomes: the statements of
// today judge them. `bench record DIR` replaces them by those of `bench run --out DIR`, and
// writes the page.
package ledger

import (
	"embed"
	"io/fs"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

//go:embed recorded
var recorded embed.FS

// Paths of the recorded runs and of the page, from the root of the repository.
const (
	RecordedPath = "cmd/bench/internal/ledger/recorded"
	PagePath     = "docs/figures.md"
)

// Recorded returns the recorded runs of experiments by name.
func Recorded(registry *bench.Registry) (map[string]report.Saved, error) {
	dir, err := fs.Sub(recorded, "recorded")
	if err != nil {
		return nil, err
	}
	return Load(dir, registry)
}

// Load returns the runs in a directory of results by the name of their experiment, except for
// those that failed and those of experiments that are not registered.
func Load(dir fs.FS, registry *bench.Registry) (map[string]report.Saved, error) {
	saved, err := report.LoadFS(dir, registry)
	if err != nil {
		return nil, err
	}
	runs := map[string]report.Saved{}
	for _, s := range saved {
		if _, err := registry.Find(s.Experiment.Name); err == nil && s.Err == nil {
			runs[s.Experiment.Name] = s
		}
	}
	return runs, nil
}
