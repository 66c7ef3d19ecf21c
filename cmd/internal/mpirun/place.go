package mpirun

import "slices"

// A placement is the host and the program of one rank.
type placement struct{ node, app int } // indexes into job.nodes and Options.Programs

// placeRanks maps every rank to a host of Hosts, of the Allocation, or to this host. nodes lists
// the hosts that have ranks, in order and each once. An error is an *OptionError: the allocation
// is too small.
func (o *Options) placeRanks() (seats []placement, nodes []string, err error) {
	hosts, programs := o.Hosts, o.Programs
	a := o.Allocation
	if len(hosts) > 0 {
		a = nil
	}
	if a != nil {
		hosts = a.Hosts
		if programs, err = a.fillRankCounts(programs, o.PPN); err != nil {
			return nil, nil, err
		}
	}
	if n := countRanks(hosts, o.PPN, programs); n > maxRanks {
		return nil, nil, optionErrorf("%d ranks are more than %d", n, maxRanks)
	}
	seats, nodes = mapRanks(hosts, o.PPN, programs)
	if a != nil && !o.Oversubscribe {
		err = a.checkCapacity(seats, nodes)
	}
	return seats, nodes, err
}

// countRanks returns the number of ranks that mapRanks will place.
func countRanks(hosts []Host, ppn int, programs []Program) (n int) {
	for _, p := range programs {
		if p.N > 0 {
			n += p.N
		} else {
			n += totalSlots(hosts, ppn)
		}
	}
	return n
}

// totalSlots returns the number of ranks of one round over the hosts.
func totalSlots(hosts []Host, ppn int) int {
	n := 0
	for _, h := range hosts {
		n += ranksPerTurn(h, ppn)
	}
	return max(n, 1)
}

// mapRanks places the ranks block by block over the hosts, and starts over at the first host when
// all are full.
func mapRanks(hosts []Host, ppn int, programs []Program) (seats []placement, nodes []string) {
	if len(hosts) == 0 {
		hosts = []Host{{Name: "localhost", Slots: 1}}
	}
	slots := totalSlots(hosts, ppn)
	index := map[string]int{}
	host, used := 0, 0
	for app, p := range programs {
		n := p.N
		if n == 0 {
			n = slots
		}
		for range n {
			if used == ranksPerTurn(hosts[host], ppn) {
				host, used = (host+1)%len(hosts), 0
			}
			used++
			name := hosts[host].Name
			node, ok := index[name]
			if !ok {
				node = len(nodes)
				index[name] = node
				nodes = append(nodes, name)
			}
			seats = append(seats, placement{node, app})
		}
	}
	return seats, nodes
}

// ranksPerTurn returns the number of consecutive ranks of a host in one round.
func ranksPerTurn(h Host, ppn int) int {
	if ppn > 0 {
		return ppn
	}
	return max(h.Slots, 1)
}

// maxPeers is the maximum number of other hosts in the Spec of an agent.
const maxPeers = 4

// peerAddrs returns addresses and names of the hosts other than node, from which its agent derives
// its own address, and the IP version of that address (0 for any). The list is empty if all ranks
// are on one host. All agents must have sent their HostInfo.
func (r *job) peerAddrs(node int) (list []string, family int) {
	hosts := 0
	for other, name := range r.nodes {
		if other == node || hosts == maxPeers || r.local[other] && r.local[node] {
			continue
		}
		hosts++
		arrival := r.links[other].arrival
		switch host := hostPart(name); {
		case isAddress(host) && !r.local[other]: // with the zone of this host, if any
			list = append(list, host)
		case arrival.Here != "":
			list = append(list, arrival.Here)
		case !r.local[other]:
			list = append(list, host)
		}
		list = append(list, arrival.Addrs...)
	}
	return list, r.commonFamily()
}

// commonFamily returns 4 or 6 if hosts were reached by different IP versions and every host has an
// address of the version returned, or else 0.
func (r *job) commonFamily() int {
	reached := map[int]bool{}
	for _, k := range r.links {
		if k.arrival.Here != "" {
			reached[familyOf(k.arrival.Here)] = true
		}
	}
	for _, family := range []int{4, 6} {
		missing := slices.ContainsFunc(r.links, func(k *agentLink) bool {
			return familyOf(k.arrival.Here) != family && !slices.ContainsFunc(k.arrival.Addrs, func(a string) bool { return familyOf(a) == family })
		})
		if len(reached) > 1 && !missing {
			return family
		}
	}
	return 0
}
