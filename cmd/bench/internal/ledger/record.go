package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// checkRun returns an error if nobody can repeat a run, or its statements are not about it.
func checkRun(run report.Saved) error {
	switch revision := run.Machine.Get("revision"); {
	case run.Quick:
		return fmt.Errorf("ledger: %s: a quick run, want a full one", run.Experiment.Name)
	case revision == "" || strings.Contains(revision, " "):
		return fmt.Errorf("ledger: %s: program of commit %q, want a build of a commit without changes", run.Experiment.Name, revision)
	}
	return nil
}

// Record copies the figures of the results in dir into the repository at root, where they
// replace the recorded runs of the same experiments, and writes the page. With an empty dir it
// only writes the page. It refuses quick runs and those of programs without a commit. It returns the names of the experiments.
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
				if err := checkRun(run); err != nil {
					return nil, err
				}
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
	err = os.WriteFile(filepath.Join(root, filepath.FromSlash(PagePath)), Page(registry, runs), 0o644)
	return names, errors.Join(err, writeAudit(filepath.Join(root, filepath.FromSlash(AuditPath)), runs))
}
