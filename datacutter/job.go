package datacutter

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
)

// Job is the common work of all hosts of a run. Every host must be given the same job, except for the
// functions in FilterDef.New; hosts reject connections of hosts with a different job.
type Job struct {
	Group  Group
	Layout Layout

	// Works are the application's queries. Instance i mod n of the n instances of the group processes work i,
	// in order. If there are none, each instance processes one work without a query.
	Works [][]byte
}

// Layout assigns the instances of filters to hosts.
type Layout []Placement

// Placement assigns copies of a filter to a host. Copies are numbered from 0 in the order of the layout.
type Placement struct {
	Group  int // instance of the filter group, numbered from 0
	Filter string
	Host   string
	Copies int // 0 means 1
}

// Limits of a job.
const (
	maxInstances = 1 << 16
	maxConns     = 1 << 20
)

// Spread assigns instances of a group to hosts in turn, one copy of each filter, so that neighbors in the
// group are on different hosts if there are several. Run rejects the result with ErrJob if there are no
// hosts, or more instances than a job may have.
func Spread(g Group, instances int, hosts ...string) (l Layout) {
	if len(hosts) == 0 {
		return nil
	}
	for i := range min(instances, maxInstances+1) {
		for _, f := range g.Filters {
			l = append(l, Placement{Group: i, Filter: f.Name, Host: hosts[len(l)%len(hosts)]})
		}
	}
	return l
}

// Gather is Spread with the last filter of every instance on the first host, which collects the results. The
// other filters are on the other hosts, if there are any.
func Gather(g Group, instances int, hosts ...string) (l Layout) {
	if len(hosts) == 0 {
		return nil
	}
	last := len(g.Filters) - 1
	rest := hosts[min(1, len(hosts)-1):]
	next := 0
	for i := range min(instances, maxInstances+1) {
		for n, f := range g.Filters {
			p := Placement{Group: i, Filter: f.Name, Host: hosts[0]}
			if n != last {
				p.Host = rest[next%len(rest)]
				next++
			}
			l = append(l, p)
		}
	}
	return l
}

// Hosts returns the sorted names of the hosts.
func (l Layout) Hosts() (hosts []string) {
	for _, p := range l {
		hosts = append(hosts, p.Host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

const digestLen = sha256.Size

// digest is a hash of a job, equal at hosts with equal jobs.
type digest [digestLen]byte

// computeDigest returns the hash of the job's JSON encoding, without its functions.
func (j *Job) computeDigest() (d digest) {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return sha256.Sum256(text)
}

// role is a filter in an instance of the group.
type role struct {
	group  int
	filter string
}

// plan is a validated job with numbered instances.
type plan struct {
	*Job
	digest     digest
	groups     int                 // instances of the group
	copies     map[role][]Instance // of each filter
	isPipeline []bool              // by instance of the group: a single line of filters without copies
}

// newPlan validates a job.
func newPlan(j *Job) (*plan, error) {
	if err := j.Group.checkGroup(); err != nil {
		return nil, err
	}
	p := &plan{Job: j, digest: j.computeDigest(), copies: make(map[role][]Instance)}
	if err := p.numberInstances(); err != nil {
		return nil, err
	}
	conns := 0
	for g := range p.groups {
		for _, f := range j.Group.Filters {
			if len(p.copies[role{g, f.Name}]) == 0 {
				return nil, fmt.Errorf("%w: layout has no placement for filter %s of group %d", ErrJob, f.Name, g)
			}
		}
		for _, s := range j.Group.Streams {
			conns += len(p.copies[role{g, s.From}]) * len(p.copies[role{g, s.To}])
		}
		p.isPipeline = append(p.isPipeline, p.checkPipeline(g))
	}
	if conns > maxConns {
		return nil, fmt.Errorf("%w: %d connections, at most %d: use fewer copies", ErrJob, conns, maxConns)
	}
	return p, nil
}

// numberInstances numbers the copies of each filter.
func (p *plan) numberInstances() error {
	total := 0
	for i, at := range p.Layout {
		n := max(at.Copies, 1)
		total += n
		switch {
		case at.Copies < 0, at.Group < 0, n > maxInstances, total > maxInstances:
			return fmt.Errorf("%w: placement %d: group %d, %d copies: at most %d instances altogether", ErrJob, i, at.Group, at.Copies, maxInstances)
		case at.Group >= maxInstances:
			return fmt.Errorf("%w: placement %d: group %d: groups are numbered from 0", ErrJob, i, at.Group)
		case at.Host == "":
			return fmt.Errorf("%w: placement %d of filter %s: Host is empty", ErrJob, i, at.Filter)
		case !slices.ContainsFunc(p.Group.Filters, func(f FilterDef) bool { return f.Name == at.Filter }):
			return fmt.Errorf("%w: placement %d: the group has no filter %q", ErrJob, i, at.Filter)
		}
		p.groups = max(p.groups, at.Group+1)
		r := role{at.Group, at.Filter}
		for range n {
			p.copies[r] = append(p.copies[r], Instance{Group: at.Group, Filter: at.Filter, Copy: len(p.copies[r]), Host: at.Host})
		}
	}
	if total == 0 {
		return fmt.Errorf("%w: layout is empty", ErrJob)
	}
	for _, list := range p.copies {
		for i := range list {
			list[i].Copies = len(list)
		}
	}
	return nil
}

// instancesOn returns the instances that run on a host.
func (p *plan) instancesOn(host string) (list []Instance) {
	for g := range p.groups {
		for _, f := range p.Group.Filters {
			for _, i := range p.copies[role{g, f.Name}] {
				if i.Host == host {
					list = append(list, i)
				}
			}
		}
	}
	return list
}

// checkPipeline reports whether every instance of a group sends to at most one other and receives from at
// most one.
func (p *plan) checkPipeline(group int) bool {
	from, to := make(map[string]bool), make(map[string]bool)
	for _, s := range p.Group.Streams {
		if from[s.From] || to[s.To] || len(p.copies[role{group, s.From}]) > 1 || len(p.copies[role{group, s.To}]) > 1 {
			return false
		}
		from[s.From], to[s.To] = true, true
	}
	return true
}

// needsAcks reports whether the consumer acknowledges the units of a stream. With one copy, acknowledgements
// are of no use.
func (p *plan) needsAcks(s *Stream, group int) bool {
	return s.Policy == DemandDriven && len(p.copies[role{group, s.To}]) > 1
}

// forEachWork calls f for each work of an instance of the group, until it fails.
func (p *plan) forEachWork(group int, f func(number int, query []byte) error) error {
	if len(p.Works) == 0 {
		return f(group, nil)
	}
	for n := group; n < len(p.Works); n += p.groups {
		if err := f(n, p.Works[n]); err != nil {
			return err
		}
	}
	return nil
}

// checkGroup validates a group.
func (g *Group) checkGroup() error {
	depth := make(map[string]int) // by filter
	for _, f := range g.Filters {
		if _, twice := depth[f.Name]; f.Name == "" || twice {
			return fmt.Errorf("%w: filter %q: name is empty or not unique", ErrJob, f.Name)
		}
		if f.New == nil {
			return fmt.Errorf("%w: filter %s has no New", ErrJob, f.Name)
		}
		depth[f.Name] = 0
	}
	names := make(map[string]bool)
	for _, s := range g.Streams {
		if s.Name == "" || names[s.Name] {
			return fmt.Errorf("%w: stream %q: name is empty or not unique", ErrJob, s.Name)
		}
		names[s.Name] = true
		for _, end := range []string{s.From, s.To} {
			if _, ok := depth[end]; !ok {
				return fmt.Errorf("%w: stream %s: the group has no filter %q", ErrJob, s.Name, end)
			}
		}
		if s.UnitSize < 1 || s.UnitSize > MaxUnitSize {
			return fmt.Errorf("%w: stream %s: UnitSize is %d, want 1 to %d", ErrJob, s.Name, s.UnitSize, MaxUnitSize)
		}
		if s.Window < 0 || s.Policy > ByKey {
			return fmt.Errorf("%w: stream %s: invalid Window %d or Policy %v", ErrJob, s.Name, s.Window, s.Policy)
		}
	}
	// The longest path grows with each pass; after as many passes as filters only a cycle makes it longer.
	for range len(g.Filters) + 1 {
		deeper := false
		for _, s := range g.Streams {
			if depth[s.To] <= depth[s.From] {
				depth[s.To], deeper = depth[s.From]+1, true
			}
		}
		if !deeper {
			return nil
		}
	}
	return fmt.Errorf("%w: streams form a cycle", ErrJob)
}
