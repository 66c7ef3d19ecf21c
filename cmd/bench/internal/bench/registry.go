package bench

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Registry is a set of experiments by name.
type Registry struct{ byName map[string]*Experiment }

// Default is where Register puts experiments.
var Default Registry

// Register adds e to Default. It is called from init functions and panics if e
// is not complete, for that is a mistake in the program.
func Register(e *Experiment) { Default.Register(e) }

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Register adds e and panics if it is not complete or its name is taken.
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
		return fmt.Errorf("the name is not in lower case with dashes")
	case g.byName[e.Name] != nil:
		return fmt.Errorf("the name is taken")
	case e.Source == "" || e.Claim == "" || e.Run == nil || len(e.Axes) == 0:
		return fmt.Errorf("Source, Claim, Axes and Run must be set")
	}
	for _, quick := range []bool{false, true} {
		if _, err := e.paramValues(nil, quick); err != nil {
			return err
		}
	}
	return CheckSettings([]*Experiment{e}, e.Tour)
}

// All are the experiments by layer, and by name within one.
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

// Find returns the named experiments in the order of names, each once. A name may also be
// a source: a paper or its figure, "RCUD fig. 6a", for all experiments that come from
// there. The error lists the names that exist.
func (g *Registry) Find(names ...string) ([]*Experiment, error) {
	found := make([]*Experiment, 0, len(names))
	for _, name := range names {
		named := g.fromSource(name)
		if e, ok := g.byName[name]; ok {
			named = []*Experiment{e}
		}
		if len(named) == 0 {
			return nil, fmt.Errorf("unknown experiment %q; there are: %s", name, g.knownNames())
		}
		for _, e := range named {
			if !slices.Contains(found, e) {
				found = append(found, e)
			}
		}
	}
	return found, nil
}

// fromSource returns the experiments that come from a paper or figure.
func (g *Registry) fromSource(pattern string) []*Experiment {
	return slices.DeleteFunc(g.All(), func(e *Experiment) bool { return !e.fromSource(pattern) })
}

// Match returns the experiments, in the order of All, whose names begin with one of the
// patterns or are of its form (path.Match: "*-latency"), or where there is no such name
// those whose source it is, as in Find; all of them if there are no patterns. A pattern
// that matches nothing is an error, which lists the names that exist.
func (g *Registry) Match(patterns ...string) ([]*Experiment, error) {
	all := g.All()
	if len(patterns) == 0 {
		return all, nil
	}
	wanted := map[*Experiment]bool{}
	for _, p := range patterns {
		some := false
		for _, e := range all {
			fits, err := path.Match(p, e.Name)
			if err != nil {
				return nil, fmt.Errorf("%q is no pattern such as sdp-* (%w)", p, err)
			}
			if fits || strings.HasPrefix(e.Name, p) {
				wanted[e], some = true, true
			}
		}
		if !some {
			for _, e := range g.fromSource(p) {
				wanted[e], some = true, true
			}
		}
		if !some {
			return nil, fmt.Errorf("no experiment is called %s; there are: %s", p, g.knownNames())
		}
	}
	return slices.DeleteFunc(all, func(e *Experiment) bool { return !wanted[e] }), nil
}

// knownNames are those of all experiments.
func (g *Registry) knownNames() string {
	var known []string
	for _, e := range g.All() {
		known = append(known, e.Name)
	}
	return strings.Join(known, ", ")
}
