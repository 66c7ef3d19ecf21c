package bench

import (
	"cmp"
	"fmt"
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
	if err := g.check(e); err != nil {
		panic(fmt.Sprintf("bench: experiment %q: %v", e.Name, err))
	}
	if g.byName == nil {
		g.byName = map[string]*Experiment{}
	}
	g.byName[e.Name] = e
}

func (g *Registry) check(e *Experiment) error {
	switch {
	case !nameForm.MatchString(e.Name):
		return fmt.Errorf("the name is not in lower case with dashes")
	case g.byName[e.Name] != nil:
		return fmt.Errorf("the name is taken")
	case e.Source == "" || e.Claim == "" || e.Run == nil || len(e.Axes) == 0:
		return fmt.Errorf("Source, Claim, Axes and Run must be set")
	}
	for _, quick := range []bool{false, true} {
		if _, err := e.values(nil, quick); err != nil {
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

// Find returns the named experiments in the order of names. The error lists
// those that exist.
func (g *Registry) Find(names ...string) ([]*Experiment, error) {
	found := make([]*Experiment, 0, len(names))
	for _, name := range names {
		e, ok := g.byName[name]
		if !ok {
			var known []string
			for _, e := range g.All() {
				known = append(known, e.Name)
			}
			return nil, fmt.Errorf("unknown experiment %q; there are: %s", name, strings.Join(known, ", "))
		}
		found = append(found, e)
	}
	return found, nil
}
