package mpirun

// seat is where a rank runs and what.
type seat struct{ node, app int }

// place gives every rank its place: block by block over the hosts, and from the
// first again when all are full. There is no such thing as too many. nodes are the
// hosts that got any, in order; the same name twice is one.
func place(hosts []Host, ppn int, programs []Program) (seats []seat, nodes []string) {
	if len(hosts) == 0 {
		hosts = []Host{{Name: "localhost", Slots: 1}}
	}
	slots := 0
	for _, h := range hosts {
		slots += block(h, ppn)
	}
	index := map[string]int{}
	host, used := 0, 0
	for app, p := range programs {
		n := p.N
		if n == 0 {
			n = slots
		}
		for range n {
			if used == block(hosts[host], ppn) {
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
			seats = append(seats, seat{node, app})
		}
	}
	return seats, nodes
}

// block is how many ranks a host gets in a row.
func block(h Host, ppn int) int {
	if ppn > 0 {
		return ppn
	}
	return max(h.Slots, 1)
}
