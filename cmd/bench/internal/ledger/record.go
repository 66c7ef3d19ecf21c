package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// Record copies the figures of the results in dir into the repository at root, where they
// replace the recorded runs of the same experiments, and writes the page. With an empty dir it
// only writes the page. It returns the names of the experiments.
func Record(root, dir string, registry *bench.Registry) (names []string, err error) {
	to := filepath.Join(root, filepath.FromSlash(RecordedPath))
	if _, err := os.Stat(to); err != nil {
		return nil, fmt.Errorf("ledger: %s: not the root of the repository: %w", root, err)
	}
	if dir != "" {
		runs, err := Load(os.DirFS(dir), registry)
		if err != nil {
			return nil, err
		}
		for _, e := range registry.All() {
			if run, ok := runs[e.Name]; ok {
				if err := report.SaveFigures(to, run); err != nil {
					return nil, err
				}
				names = append(names, e.Name)
			}
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("ledger: %s: no results of experiments", dir)
		}
	}
	runs, err := Load(os.DirFS(to), registry)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return names, os.WriteFile(filepath.Join(root, filepath.FromSlash(PagePath)), Page(registry, runs), 0o644)
}
