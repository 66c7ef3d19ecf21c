package bench

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/internal/spelling"
)

// A Registry is a set of experiments by name.
type Registry struct{ byName map[string]*Experiment }

// Default is the registry of Register.
var Default Registry

// Register adds e to Default. It is called from init functions. It panics if e is incomplete,
// which is a programming error.
func Register(e *Experiment) { Default.Register(e) }

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Register adds e. It panics if e is incomplete or its name is already registered.
func (g *Registry) Register(e *Experiment) {
	if err := g.checkExperiment(e); err != nil {
		panic(fmt.Sprintf("bench: experiment %q: %v", e.Name, err))
	}
	if g.byName == nil {
		g.byName = map[string]*Experiment{}
	}
	g.byName[e.Name] = e
}

func (g *Registry) checkExperiment(e *Experiment) error {
	switch {
	case !nameForm.MatchString(e.Name):
		return fmt.Errorf("invalid name, want lower-case words joined by dashes")
	case g.byName[e.Name] != nil:
		return fmt.Errorf("name already registered")
	case e.Source == "" || len(e.Claims) == 0 || e.Run == nil || len(e.Axes) == 0:
		return fmt.Errorf("missing Source, Claims, Axes or Run")
	}
	for _, s := range e.Claims {
		if s.Sentence == "" || s.Compare == nil {
			return fmt.Errorf("statement %q: missing Sentence or Compare", s.Sentence)
		}
	}
	for _, quick := range []bool{false, true} {
		if _, err := e.paramValues(nil, quick); err != nil {
			return err
		}
	}
	return CheckSettings([]*Experiment{e}, e.Tour)
}

// All returns the experiments ordered by layer, and by name within a layer.
func (g *Registry) All() []*Experiment {
	all := make([]*Experiment, 0, len(g.byName))
	for _, e := range g.byName {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Experiment) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Find returns the named experiments in the order of names, each once. A name may also be a
// source, a paper or one of its figures such as "RCUD fig. 6a", and selects all experiments
// with statements about this source. The error names the nearest one.
func (g *Registry) Find(names ...string) ([]*Experiment, error) {
	found := make([]*Experiment, 0, len(names))
	for _, name := range names {
		named := g.fromSource(name)
		if e, ok := g.byName[name]; ok {
			named = []*Experiment{e}
		}
		if len(named) == 0 {
			return nil, fmt.Errorf("unknown experiment %q%s", name, g.hintFor(name))
		}
		for _, e := range named {
			if !slices.Contains(found, e) {
				found = append(found, e)
			}
		}
	}
	return found, nil
}

// fromSource returns the experiments of a paper or figure.
func (g *Registry) fromSource(pattern string) []*Experiment {
	return slices.DeleteFunc(g.All(), func(e *Experiment) bool { return !e.fromSource(pattern) })
}

// Match returns, in the order of All, the experiments whose names begin with one of the
// patterns or match it as a glob (path.Match: "*-latency"). A pattern that matches no name
// selects by source, as in Find. Without patterns Match returns all experiments. A pattern
// without a match is an error that names the nearest known one.
func (g *Registry) Match(patterns ...string) ([]*Experiment, error) {
	all := g.All()
	if len(patterns) == 0 {
		return all, nil
	}
	wanted := map[*Experiment]bool{}
	for _, p := range patterns {
		some := false
		for _, e := range all {
			matched, err := path.Match(p, e.Name)
			if err != nil {
				return nil, fmt.Errorf("malformed pattern %q, want one like sdp-*: %w", p, err)
			}
			if matched || strings.HasPrefix(e.Name, p) {
				wanted[e], some = true, true
			}
		}
		if !some {
			for _, e := range g.fromSource(p) {
				wanted[e], some = true, true
			}
		}
		if !some {
			return nil, fmt.Errorf("no experiment matches %q%s", p, g.hintFor(p))
		}
	}
	return slices.DeleteFunc(all, func(e *Experiment) bool { return !wanted[e] }), nil
}

// Nearest returns the name or the source of an experiment that name stands for, or "".
func (g *Registry) Nearest(name string) string {
	var known []string
	for _, e := range g.All() {
		known = append(known, e.Name)
	}
	for _, e := range g.All() {
		for _, source := range e.paperSources() {
			if paperOf(source) != nil {
				known = append(known, source)
			}
		}
	}
	return spelling.Nearest(name, known...)
}

// hintFor returns the end of the error of an unknown name: the nearest one, or the command that
// lists all.
func (g *Registry) hintFor(name string) string {
	if nearest := g.Nearest(name); nearest != "" {
		return fmt.Sprintf("; did you mean %q?", nearest)
	}
	return "; `bench list` shows the names"
}
