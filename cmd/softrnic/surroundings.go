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

// machineFacts are the facts about a machine and a process that doctor evaluates.
type machineFacts struct {
	goos, goarch, goVersion string
	cpus, maxProcs          int
	linkEnv                 string // SOFTRNIC_LINK
	probe                   link.ProbeResult
	rdmaDevices             []string
	rxeLoaded               bool // rdma_rxe is in the kernel
	addresses               []interfaceAddr
	endpoint                error // why `softrnic stat` would not find a process
	test                    selfTestResult
}

// An interfaceAddr is an address of an interface that is up.
type interfaceAddr struct {
	ip   netip.Addr
	name string // of the interface
	mtu  int
}

// inspectMachine collects the facts about this machine.
func inspectMachine(ctx context.Context, options rnic.Options) machineFacts {
	s := machineFacts{
		goos: runtime.GOOS, goarch: runtime.GOARCH, goVersion: runtime.Version(),
		cpus: runtime.NumCPU(), maxProcs: runtime.GOMAXPROCS(0),
		linkEnv:     os.Getenv(link.EnvVar),
		probe:       link.Probe(),
		rdmaDevices: listDir("/sys/class/infiniband"),
		rxeLoaded:   moduleLoaded("/proc/modules", "rdma_rxe"),
		addresses:   interfaceAddrs(),
	}
	s.test, s.endpoint = selfTest(ctx, options)
	return s
}

// listDir returns the names in a directory, or none if it does not exist.
func listDir(dir string) []string {
	entries, _ := os.ReadDir(dir)
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = filepath.Base(e.Name())
	}
	return list
}

// moduleLoaded reports whether /proc/modules lists a kernel module.
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

// interfaceAddrs returns the addresses of all interfaces that are up.
func interfaceAddrs() []interfaceAddr {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var list []interfaceAddr
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
				list = append(list, interfaceAddr{ip, i.Name, i.MTU})
			}
		}
	}
	return list
}
