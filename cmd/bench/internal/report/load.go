package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
)

// A record is the content of NAME.json: the metadata of a run.
type record struct {
	Experiment string          `json:"experiment"`
	Source     string          `json:"source"`
	Claim      string          `json:"claim"`
	Quick      bool            `json:"quick"`
	Set        bench.Settings  `json:"set,omitempty"`
	Seconds    float64         `json:"seconds"`
	Error      string          `json:"error,omitempty"`
	Machine    env.Fingerprint `json:"machine"`
}

// newRecord returns the record of a run.
func newRecord(machine env.Fingerprint, res *bench.Result) record {
	e := res.Experiment
	r := record{
		Experiment: e.Name, Source: e.Source, Claim: e.Claim(), Quick: res.Quick, Set: res.Set,
		Seconds: res.Elapsed.Seconds(), Machine: machine,
	}
	if res.Err != nil {
		r.Error = res.Err.Error()
	}
	return r
}

// EarlierRun returns the elapsed time of the saved run of e in dir. It returns false if no such
// run with the same options succeeded.
func EarlierRun(dir string, e *bench.Experiment, o bench.Options) (time.Duration, bool) {
	if dir == "" {
		return 0, false
	}
	r, err := readRecord(os.DirFS(dir), e.Name)
	if err != nil || r.Error != "" || r.Quick != o.Quick || !maps.Equal(r.Set, o.Set) {
		return 0, false
	}
	return time.Duration(r.Seconds * float64(time.Second)), true
}

func readRecord(dir fs.FS, name string) (r record, err error) {
	b, err := fs.ReadFile(dir, name+".json")
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%s.json: %w", name, err)
	}
	return r, nil
}

// A Saved is a result that Save wrote, and the machine that it was measured on.
type Saved struct {
	*bench.Result
	Machine env.Fingerprint
}

// Load reads the results that Save wrote into dir, in the order of the registry.
func Load(dir string, registry *bench.Registry) ([]Saved, error) {
	if err := CheckResults(dir); err != nil {
		return nil, err
	}
	return LoadFS(os.DirFS(dir), registry)
}

// Circumstances describes the date, the machine and the commit of the run: "on 2026-01-02, 2 processors".
func (s Saved) Circumstances() string {
	text := ""
	for _, fact := range []struct{ name, format string }{
		{"date", " on %s"}, {"cores", ", %s processors"}, {"cpu", " (%s)"}, {"kernel", ", %s"}, {"load", ", load %s before it"}, {"revision", ", commit %s"},
	} {
		if value := s.Machine.Get(fact.name); value != "" {
			text += fmt.Sprintf(fact.format, value)
		}
	}
	return strings.TrimLeft(text, ", ")
}

// CheckResults returns an error if dir has no results.
func CheckResults(dir string) error {
	for _, pattern := range []string{"*.json", "*.jsonl"} {
		if names, _ := filepath.Glob(filepath.Join(dir, pattern)); len(names) > 0 {
			return nil
		}
	}
	return fmt.Errorf("%s: no files of `bench run --out` or `bench report`", dir)
}

// LoadFS reads the results that Save wrote into the root of a file system, in the order of the
// registry. The statements of today judge the saved figures. A result without a verdict and
// without an error in its NAME.json is returned as failed.
func LoadFS(dir fs.FS, registry *bench.Registry) (saved []Saved, err error) {
	paths, err := fs.Glob(dir, "*.jsonl")
	if err != nil {
		return nil, err
	}
	records, err := fs.Glob(dir, "*.json") // the only file of a run that failed before its first figure
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range append(paths, records...) {
		names = append(names, strings.TrimSuffix(path, filepath.Ext(path)))
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name == pageName {
			continue
		}
		res, machine, err := loadResult(dir, name, registry)
		if err != nil {
			return nil, err
		}
		saved = append(saved, Saved{res, machine})
	}
	position := map[string]int{}
	for i, e := range registry.All() {
		position[e.Name] = i - len(registry.All()) // unknown experiments have 0 and sort last
	}
	slices.SortStableFunc(saved, func(a, b Saved) int {
		return cmp.Compare(position[a.Experiment.Name], position[b.Experiment.Name])
	})
	return saved, nil
}

// errUnfinished is the error of a result whose file has no verdict.
var errUnfinished = errors.New("no verdict: run was interrupted")

// loadResult reads the files of one result.
func loadResult(dir fs.FS, name string, registry *bench.Registry) (*bench.Result, env.Fingerprint, error) {
	r, err := readRecord(dir, name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	lines, err := fs.ReadFile(dir, name+".jsonl")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	rows, verdict, err := readLines(lines)
	if err != nil {
		return nil, nil, fmt.Errorf("%s.jsonl: %w", name, err)
	}
	res := &bench.Result{Rows: rows, Quick: r.Quick, Set: r.Set, Elapsed: time.Duration(r.Seconds * float64(time.Second))}
	switch {
	case r.Error != "":
		res.Err = errors.New(r.Error)
	case verdict == nil:
		res.Err = errUnfinished
	default:
		res.Outcomes = verdict.Statements
	}
	found, err := registry.Find(name)
	if err == nil && len(found) == 1 && found[0].Name == name {
		res.Experiment = found[0]
		if res.Err == nil {
			res.Outcomes = res.Experiment.Judge(rows, res.Quick, res.Set)
		}
	} else { // the experiment of another version
		res.Experiment = &bench.Experiment{Name: name, Source: cmp.Or(r.Source, bench.Adapter)}
		for _, o := range res.Outcomes {
			res.Experiment.Claims = append(res.Experiment.Claims, bench.Statement{Source: o.Source, Sentence: o.Sentence, Paper: o.Paper})
		}
	}
	return res, r.Machine, nil
}

// readLines parses the output of WriteJSON. The verdict is nil if there is none.
func readLines(lines []byte) (rows []bench.Row, verdict *bench.VerdictLine, err error) {
	for n := 1; ; n++ {
		line, rest, more := bytes.Cut(lines, []byte("\n"))
		lines = rest
		if len(line) > 0 {
			var kind struct {
				Series *string `json:"series"`
			}
			err := json.Unmarshal(line, &kind)
			switch {
			case err != nil:
			case kind.Series != nil:
				rows = append(rows, bench.Row{})
				err = json.Unmarshal(line, &rows[len(rows)-1])
			default:
				verdict = new(bench.VerdictLine)
				err = json.Unmarshal(line, verdict)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", n, err)
			}
		}
		if !more {
			return rows, verdict, nil
		}
	}
}
