//go:build interop && linux

package interop

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
)

// program is a program of rdma-core or perftest, and its replacement in softrnic.
type program struct {
	name string   // of the original
	soft []string // command of softrnic

	// args are the arguments of a run, the same for both except for the options that select the
	// adapter.
	args func(p run) []string

	gid      string // option that takes the index of the GID
	v4Only   bool   // the original finds its server by IPv4 only
	cm       bool   // both sides connect by RDMA-CM, not by TCP
	reliable bool   // all messages are reliable, so it ends under faults, too
	sizes    func(mtu int) []int
	proof    func(p run) string // matches the output of a client that has finished
}

// run is one run of a program.
type run struct {
	program   *program
	softHosts bool // softrnic is the server
	f         family
	mtu, size int
	iters     int
	impair    string // for softrnic's --impair
	preload   string // a library with which the original runs here as well, in place of the softrnic command
	device    string // of the guest, default lab.Device
}

func (r run) String() string {
	role := "softrnic client"
	if r.softHosts {
		role = "softrnic server"
	}
	return fmt.Sprintf("%s, %s %s MTU %d, %d bytes", r.program.name, role, r.f.name, r.mtu, r.size)
}

const runTime = 4 * time.Minute // upper bound for a program

// programs are those of ibverbs-utils and perftest; cmPrograms are those of rdmacm-utils.
func programs() []*program {
	var list []*program
	for _, typ := range []string{"rc", "uc", "ud", "srq"} {
		p := &program{
			name: "ibv_" + typ + "_pingpong", soft: []string{"pingpong", typ}, gid: "-g", reliable: typ == "rc" || typ == "srq",
			sizes: sizesAround,
			args: func(r run) []string {
				args := []string{"-s", fmt.Sprint(r.size), "-n", fmt.Sprint(r.iters)}
				if typ != "ud" {
					args = append(args, "-m", fmt.Sprint(r.mtu))
				}
				if typ != "srq" {
					args = append(args, "-c") // the payload is checked on both sides
				}
				if typ == "srq" && r.size > 1<<20 {
					args = append(args, "-q", "2") // all queue pairs send at once, and the guest cannot handle 16 of them
				}
				return args
			},
			proof: func(r run) string { return fmt.Sprintf("%d iters in ", r.iters) },
		}
		switch typ {
		case "ud":
			p.sizes = datagrams
		case "uc":
			p.sizes = unguarded
		}
		list = append(list, p)
	}
	for _, test := range []string{"send_bw", "send_lat", "write_bw", "write_lat", "read_bw", "read_lat", "atomic_bw", "atomic_lat"} {
		verb, kind, _ := strings.Cut(test, "_")
		list = append(list, perftest(test), perftest(test, "-R"))
		switch verb {
		case "send":
			list = append(list, perftest(test, "-c", "UC"), perftest(test, "-c", "UD"), perftest(test, "-c", "UD", "-R"))
		case "write":
			list = append(list, perftest(test, "-c", "UC"))
		}
		if kind == "bw" {
			list = append(list, perftest(test, "-b"), perftest(test, "-q", "3"))
		}
	}
	return list
}

// perftest is a program of perftest with some options.
func perftest(test string, options ...string) *program {
	p := &program{
		name: strings.Join(append([]string{"ib_" + test}, options...), " "), soft: []string{"perf", test},
		gid: "-x", v4Only: true, cm: slices.Contains(options, "-R"),
		reliable: !slices.Contains(options, "UC") && !slices.Contains(options, "UD"),
		sizes:    sizesAround,
		proof:    func(r run) string { return fmt.Sprintf(`(?m)^ %d +%d +(\d|inf)`, r.size, r.iters*r.pairs()) },
	}
	atomic := strings.HasPrefix(test, "atomic")
	switch {
	case atomic:
		p.sizes = func(int) []int { return []int{8} }
	case slices.Contains(options, "UD"):
		p.sizes = datagrams
	case slices.Contains(options, "UC"):
		p.sizes = unguarded
	}
	p.args = func(r run) []string {
		args := []string{"-m", fmt.Sprint(r.mtu), "-n", fmt.Sprint(r.iters), "-F"}
		if !atomic {
			args = append(args, "-s", fmt.Sprint(r.size))
		}
		return append(args, options...)
	}
	return p
}

// pairs is the number of queue pairs, each of which does all iterations.
func (r run) pairs() int {
	if strings.HasSuffix(r.program.name, "-q 3") {
		return 3
	}
	return 1
}

// sizesAround are message sizes around the MTU and up to 8 MiB.
func sizesAround(mtu int) []int { return []int{1, mtu, mtu + 1, 64 << 10, 8 << 20} } // the middle one is run in every matrix

// unguarded are message sizes for UC, where no window limits the packets in the receiver's socket
// buffer.
func unguarded(mtu int) []int { return []int{1, mtu, mtu + 1, 16 << 10} }

// datagrams are message sizes up to the MTU.
func datagrams(mtu int) []int { return []int{1, mtu} }

// itersFor returns the number of messages of a size, which bounds the time in the guest.
func itersFor(size int) int { return min(50, max(5, 1<<20/size)) }

// runBoth runs the program on both sides.
func (r run) runBoth(t testing.TB, g *lab.Guest) (err error) {
	for range 3 {
		// A server of perftest with -R listens twice, and Linux rejects a client between.
		if err = r.runOnce(t, g); err == nil || !r.program.cm || !early.MatchString(err.Error()) {
			break
		}
	}
	return err
}

// runOnce is an attempt of runBoth.
func (r run) runOnce(t testing.TB, g *lab.Guest) error {
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	original, _, _ := strings.Cut(r.program.name, " ")
	guest := []string{original, "-d", cmp.Or(r.device, lab.Device)}
	if r.device == "" {
		guest = append(guest, r.program.gid, fmt.Sprint(g.GIDIndex(r.f.guest)))
	}
	guest = append(guest, r.program.args(r)...)
	host := append([]string{lab.Binary(t, "softrnic")}, r.program.soft...)
	host = append(append(host, r.program.args(r)...), "--addr", netip.AddrPortFrom(r.f.host, 4791).String())
	if r.impair != "" {
		host = append(host, "--impair", r.impair)
	}
	if r.preload != "" {
		host = append(preloaded(r.preload, r.f.host, original, "-d", "softrnic0", r.program.gid, "0"), r.program.args(r)...)
	}

	inGuest := func(args ...string) *side { return startGuest(ctx, g, append(guest, args...)) }
	here := func(args ...string) *side { return startHere(ctx, append(host, args...)) }
	var server, client *side
	if r.softHosts {
		server = here()
		if !r.program.cm {
			if err := lab.WaitListen(ctx, tcpPort); err != nil {
				return fmt.Errorf("%w\n%v", err, server)
			}
		}
		name := r.f.host
		if r.program.v4Only && !r.program.cm {
			name = lab.HostIPv4
		}
		client = inGuest(name.String())
	} else {
		server = inGuest()
		wait, name := func() error { return g.WaitListen(ctx, tcpPort) }, lab.GuestIPv4 // the originals listen with IPv4
		if r.program.cm {
			wait, name = func() error { return g.WaitListenCM(ctx) }, r.f.guest
		}
		if err := wait(); err != nil {
			return fmt.Errorf("%w\n%v", err, server)
		}
		client = here(name.String())
	}
	clientErr := <-client.ended
	for clientErr != nil && r.softHosts && r.program.cm && early.Match(client.out.Bytes()) && len(server.ended) == 0 && ctx.Err() == nil {
		client = inGuest(r.f.host.String())
		clientErr = <-client.ended
	}
	if clientErr != nil {
		cancel() // the server would wait for another client
	}
	serverErr := <-server.ended
	switch {
	case clientErr != nil:
		return fmt.Errorf("client: %w\n%v\n%v", clientErr, client, server)
	case serverErr != nil:
		return fmt.Errorf("server: %w\n%v\n%v", serverErr, client, server)
	case !regexp.MustCompile(r.program.proof(r)).Match(client.out.Bytes()):
		return fmt.Errorf("the client does not print %q\n%v\n%v", r.program.proof(r), client, server)
	}
	return nil
}

const tcpPort = 18515 // of ibv_*_pingpong and perftest

// side is a program that runs on one side.
type side struct {
	args  []string
	out   bytes.Buffer // read only after its end
	ended chan error   // one
}

func (s *side) String() string { return strings.Join(s.args, " ") + "\n" + s.out.String() }

func startGuest(ctx context.Context, g *lab.Guest, args []string) *side {
	s := &side{args: args, ended: make(chan error, 1)}
	p, err := g.Start(ctx, &s.out, &s.out, args...)
	if err != nil {
		s.ended <- err
		return s
	}
	go func() { s.ended <- p.Wait() }()
	return s
}

func startHere(ctx context.Context, args []string) *side {
	s := &side{args: args, ended: make(chan error, 1)}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &s.out, &s.out
	if err := cmd.Start(); err != nil {
		s.ended <- err
		return s
	}
	go func() { s.ended <- cmd.Wait() }()
	return s
}

// TestPrograms runs every program of the two packages against softrnic's, in both roles.
func TestPrograms(t *testing.T) {
	g := lab.Need(t)
	list := faults()
	n, picks, runs := 0, 0, 0
	for _, p := range programs() {
		for _, softHosts := range []bool{true, false} {
			role := "client"
			if softHosts {
				role = "server"
			}
			for i, fault := range list {
				if i > 0 && (!p.reliable || !isWide() && !picked(n, i, len(list)-1)) {
					continue
				}
				for fi, f := range families {
					for mi, mtu := range mtus {
						if !isSelected(picks, fi, mi, i == 0) {
							continue
						}
						if p.cm { // the originals resolve IPv4 only
							if isWide() && fi > 0 {
								continue
							}
							f = families[0]
						}
						for _, size := range p.chosenSizes(mtu.Bytes(), i > 0, runs) {
							runs++
							r := run{program: p, softHosts: softHosts, f: f, mtu: mtu.Bytes(), size: size, iters: itersFor(size), impair: fault.impair}
							cell(t, programT, fault.name, []string{p.name, role}, r.String()+", "+fault.name, func(t *testing.T) {
								setFaults(t, g, fault.Faults)
								require.NoError(t, r.runBoth(t, g))
							})
						}
					}
				}
				picks++
			}
			n++
		}
	}
}

// picked reports whether the CI part runs the i-th of faults, from 1, for program and role n: one
// fault for each program, in one role, and another one for the next program.
func picked(n, i, faults int) bool {
	program := n / 2
	return i == 1+program%faults && n%2 == (program+program/faults)%2
}

// chosenSizes returns the sizes that are run: all in a full matrix, another one for each n in a
// wide one, and the middle one in the CI part. With packet loss the small sizes are not run,
// because there are many messages of them.
func (p *program) chosenSizes(mtu int, faulty bool, n int) []int {
	list := p.sizes(mtu)
	if faulty && strings.HasPrefix(p.name, "ib_read") {
		list[len(list)-1] = 1 << 20 // rxe requests lost parts of a READ only after its timeout
	}
	middle := (len(list) - 1) / 2
	switch {
	case !isWide():
		return list[middle : middle+1]
	case !faulty && isFull():
		return list
	case !faulty:
		middle = 0
	}
	middle += n % (len(list) - middle)
	return list[middle : middle+1]
}
