package main

import (
	"bufio"
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/rnic"
)

// surroundings are the facts about a machine and a process that doctor judges.
type surroundings struct {
	goos, goarch, goVersion string
	cpus, maxProcs          int
	linkEnv                 string // SOFTRNIC_LINK
	probe                   link.ProbeResult
	rdmaDevices             []string
	rxeLoaded               bool // rdma_rxe is in the kernel
	addresses               []address
	endpoint                error // why `softrnic stat` would not find a process
	test                    testResult
}

// address is an address of an interface that is up.
type address struct {
	ip   netip.Addr
	name string // of the interface
	mtu  int
}

// look finds out about this machine.
func look(ctx context.Context, options rnic.Options) surroundings {
	s := surroundings{
		goos: runtime.GOOS, goarch: runtime.GOARCH, goVersion: runtime.Version(),
		cpus: runtime.NumCPU(), maxProcs: runtime.GOMAXPROCS(0),
		linkEnv:     os.Getenv(link.EnvVar),
		probe:       link.Probe(),
		rdmaDevices: names("/sys/class/infiniband"),
		rxeLoaded:   moduleLoaded("/proc/modules", "rdma_rxe"),
		addresses:   addresses(),
	}
	s.test, s.endpoint = selfTest(ctx, options)
	return s
}

// names lists a directory; one that is not there is empty.
func names(dir string) []string {
	entries, _ := os.ReadDir(dir)
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = filepath.Base(e.Name())
	}
	return list
}

// moduleLoaded looks a kernel module up in /proc/modules.
func moduleLoaded(file, module string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, _, _ := strings.Cut(lines.Text(), " "); name == module {
			return true
		}
	}
	return false
}

// addresses lists the addresses of all interfaces that are up.
func addresses() []address {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var list []address
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // the interface has just gone
		}
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				ip := link.NormalizeBind(prefix.Addr().WithZone(i.Name)) // as --addr wants it
				list = append(list, address{ip, i.Name, i.MTU})
			}
		}
	}
	return list
}
