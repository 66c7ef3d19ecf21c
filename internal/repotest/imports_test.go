package repotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/softrnic/softrnic/"

// allowedImports maps each part of the module to the other parts that it may import.
// A part is a directory with all directories below it, unless they have an entry.
var allowedImports = map[string][]string{
	"verbs":                  {},
	"verbs/uverbs":           {"verbs", "internal/adapter", "internal/qpstate"},
	"internal/verbstest":     {"verbs", "wire"},
	"wire":                   {},
	"iwarp":                  {},
	"wire/mad":               {},
	"internal/bsdh":          {},
	"reliability":            {"wire"},
	"internal/congestion":    {"reliability", "internal/spelling"},
	"internal/nack":          {"wire", "reliability", "internal/deadline", "internal/fifo", "internal/place", "internal/sparse"},
	"internal/sparse":        {},
	"internal/counters":      {},
	"internal/deadline":      {},
	"internal/fifo":          {},
	"internal/hostaddr":      {},
	"internal/rankaddr":      {"internal/hostaddr"},
	"internal/rankwire":      {"internal/adapter", "internal/vtime", "verbs", "cm"},
	"internal/place":         {},
	"internal/qpstate":       {"verbs"},
	"qp":                     {"verbs", "wire", "iwarp", "reliability", "internal/congestion", "internal/fifo", "internal/place", "internal/qpstate"},
	"internal/epoll":         {},
	"internal/link":          {"wire", "internal/epoll", "internal/fifo", "internal/racesync", "internal/place", "internal/spelling", "internal/hostaddr"},
	"internal/broker":        {"wire", "internal/link"},
	"internal/link/memory":   {"wire", "internal/link", "internal/hostaddr"},
	"internal/link/impair":   {"wire", "internal/link", "internal/spelling"},
	"internal/link/capture":  {"wire", "internal/link"},
	"rnic":                   {"internal/vtime", "internal/counters", "verbs", "wire", "iwarp", "reliability", "qp", "internal/adapter", "internal/broker", "internal/congestion", "internal/deadline", "internal/environment", "internal/fifo", "internal/hostaddr", "internal/ifwatch", "internal/link", "internal/debug", "internal/pages", "internal/rnichook", "internal/sched", "internal/spelling"},
	"rnic/rnicdebug":         {"rnic", "internal/debug", "internal/link"},
	"cm":                     {"internal/vtime", "internal/counters", "verbs", "wire", "internal/bsdh", "cm/internal/protocol", "internal/adapter", "internal/hostaddr"},
	"cm/internal/protocol":   {"internal/deadline", "wire/mad", "internal/bsdh"},
	"internal/ifwatch":       {},
	"internal/cancelctx":     {},
	"internal/netns":         {},
	"internal/vtime":         {},
	"internal/cluster":       {"internal/vtime", "internal/deadline", "internal/link", "internal/rnichook", "rnic", "verbs", "wire"},
	"internal/faulttest":     {},
	"internal/childtest":     {},
	"internal/wiretest":      {},
	"internal/ownaddr":       {},
	"internal/racesync":      {},
	"internal/pages":         {"internal/place"},
	"internal/progress":      {"internal/vtime", "internal/cancelctx", "internal/sched", "verbs"},
	"internal/environment":   {"internal/spelling"},
	"internal/sched":         {},
	"internal/sendqueue":     {},
	"internal/spelling":      {},
	"mpi/internal/shm":       {"internal/racesync"},
	"rdm":                    {"internal/progress", "internal/counters", "verbs", "wire", "cm", "reliability", "internal/nack", "internal/datagram", "internal/fifo", "internal/place", "internal/adapter"},
	"internal/datagram":      {"internal/vtime", "verbs", "wire", "reliability", "internal/adapter", "internal/nack", "internal/sparse", "internal/hostaddr"},
	"sdp":                    {"internal/progress", "internal/counters", "internal/cancelctx", "internal/pages", "internal/place", "verbs", "cm", "wire", "internal/bsdh", "internal/flow", "sdp/internal/protocol", "internal/hostaddr", "internal/adapter"},
	"internal/flow":          {"internal/spelling"},
	"sdp/internal/protocol":  {"verbs", "internal/bsdh", "internal/flow"},
	"examples/acp":           {"verbs", "rnic", "acp"},
	"examples/sdp":           {"rnic", "sdp"},
	"acp":                    {"internal/progress", "internal/counters", "internal/environment", "internal/rankaddr", "verbs", "cm", "rdm", "mpi/pmi", "acp/internal/fabric", "acp/internal/protocol", "acp/internal/plain", "internal/adapter"},
	"acp/collective":         {"acp", "acp/internal/plain"},
	"acp/data":               {"acp"},
	"acp/internal/plain":     {},
	"acp/internal/protocol":  {},
	"acp/internal/fabric":    {"internal/progress", "internal/rankwire", "verbs", "cm", "rdm"},
	"acp/neighbor":           {"acp", "acp/internal/plain"},
	"acp/acptest":            {"verbs", "rnic", "mpi/pmi", "acp"},
	"datacutter":             {},
	"mpi/internal/datatype":  {},
	"mpi/internal/coll":      {"internal/spelling", "mpi/internal/deadlock"},
	"mpi":                    {"internal/vtime", "internal/adapter", "internal/counters", "internal/environment", "internal/rankaddr", "verbs", "mpi/pmi", "mpi/internal/coll", "mpi/internal/collective", "mpi/internal/comm", "mpi/internal/datatype", "mpi/internal/deadlock", "mpi/internal/detector", "mpi/internal/engine", "mpi/internal/fabric", "mpi/internal/match", "mpi/internal/membership", "mpi/internal/onesided", "mpi/internal/partitioned", "mpi/internal/protocol", "mpi/internal/pt2pt", "mpi/internal/rma", "mpi/internal/topology"},
	"mpi/internal/pt2pt":     {"mpi/internal/collective", "mpi/internal/comm", "mpi/internal/datatype", "mpi/internal/deadlock", "mpi/internal/engine", "mpi/internal/match", "mpi/internal/onesided", "mpi/internal/partitioned", "mpi/internal/protocol"},
	"mpi/internal/comm":      {"mpi/internal/engine", "mpi/internal/match"},
	"mpi/internal/onesided":  {"mpi/internal/comm", "mpi/internal/datatype", "mpi/internal/deadlock", "mpi/internal/engine", "mpi/internal/envelope", "mpi/internal/match", "mpi/internal/protocol", "mpi/internal/rma"},
	"mpi/internal/rma":       {"mpi/internal/datatype"},
	"mpi/internal/deadlock":  {},
	"mpi/internal/detector":  {"internal/vtime", "mpi/internal/deadlock", "mpi/internal/engine", "mpi/internal/envelope", "mpi/internal/match", "mpi/internal/protocol"},
	"mpi/internal/placement": {"internal/vtime", "mpi/pmi"},
	"mpi/mpitest":            {"verbs", "rnic", "mpi"},
	"examples/mpi":           {"verbs", "rnic", "mpi"},
	"mpi/internal/engine":    {"internal/vtime", "internal/progress", "mpi/internal/fabric", "mpi/internal/match", "mpi/internal/protocol"},
	"mpi/internal/fabric":    {"internal/epoll", "internal/flow", "internal/vtime", "internal/hostaddr", "internal/progress", "internal/rankwire", "internal/racesync", "internal/sched", "verbs", "cm", "internal/nack", "internal/sparse", "internal/datagram", "mpi/internal/envelope", "mpi/internal/protocol"},
	"mpi/internal/protocol":  {"internal/fifo", "internal/sparse", "mpi/internal/envelope", "mpi/internal/match"},
	"mpi/internal/envelope":  {},
	"mpi/internal/match":     {},
	"mpi/pmi":                {"internal/pmi"},
	"internal/pmi":           {"internal/sendqueue"},
	"internal/rnichook":      {"internal/link"},
	"rnic/internal/sim":      {"internal/counters", "verbs", "wire", "reliability", "qp", "internal/link", "internal/rnichook", "rnic"},
	"internal/repotest":      {},
	"internal/adapter":       {"verbs"},
	"internal/misuse":        {},
	"interop":                {"verbs", "wire", "rnic", "internal/link"},
	"cmd/internal":           {"internal/hostaddr", "internal/pmi", "internal/sendqueue", "internal/spelling"},
	"cmd/softrnic":           {"cmd/internal", "internal/debug", "internal/environment", "internal/hostaddr", "internal/link", "verbs", "verbs/uverbs", "wire", "rnic", "qp", "cm", "sdp", "mpi", "internal/spelling"},
	"cmd/bench":              {"internal/netns", "internal/cluster", "internal/vtime", "cmd/internal", "internal/pmi", "internal/hostaddr", "internal/environment", "internal/link", "internal/sched", "verbs", "verbs/uverbs", "wire", "rnic", "qp", "rdm", "sdp", "datacutter", "mpi", "acp", "internal/spelling"},
	"internal/debug":         {},

	"mpi/internal/membership":  {"internal/vtime", "mpi/pmi", "mpi/internal/collective", "mpi/internal/deadlock", "mpi/internal/detector", "mpi/internal/engine", "mpi/internal/envelope", "mpi/internal/fabric", "mpi/internal/onesided", "mpi/internal/partitioned", "mpi/internal/placement", "mpi/internal/protocol"},
	"mpi/internal/collective":  {"internal/vtime", "internal/sched", "verbs", "mpi/internal/coll", "mpi/internal/comm", "mpi/internal/datatype", "mpi/internal/deadlock", "mpi/internal/engine", "mpi/internal/envelope", "mpi/internal/fabric", "mpi/internal/match", "mpi/internal/protocol", "mpi/internal/shm", "mpi/internal/topology"},
	"mpi/internal/topology":    {"mpi/internal/comm"},
	"mpi/internal/partitioned": {"mpi/internal/collective", "mpi/internal/comm", "mpi/internal/datatype", "mpi/internal/deadlock", "mpi/internal/engine", "mpi/internal/envelope", "mpi/internal/match", "mpi/internal/protocol"},
}

// Cores are deterministic: they have no I/O, locks, goroutines, clocks and random
// sources, and must not import the packages of the standard library that offer them.
var (
	cores = []string{"internal/qpstate", "internal/deadline", "internal/fifo", "internal/sparse", "internal/congestion", "wire", "wire/mad", "iwarp", "internal/bsdh", "reliability", "internal/congestion", "internal/nack", "qp", "cm/internal/protocol", "internal/flow", "sdp/internal/protocol",
		"mpi/internal/datatype", "mpi/internal/coll", "mpi/internal/envelope", "mpi/internal/match", "mpi/internal/protocol", "mpi/internal/rma", "mpi/internal/deadlock", "acp/internal/protocol"}
	forbidden = []string{"net", "os", "sync", "time", "math/rand", "math/rand/v2", "crypto/rand", "syscall", "context", "log", "log/slog"}
)

type pkg struct {
	ImportPath string
	Imports    []string
}

// listPackages returns all packages of the module.
func listPackages(t *testing.T) (list []pkg) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	require.NoError(t, err)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		list = append(list, p)
	}
}

// findPart returns the key of allowedImports that a package belongs to, "" if none.
func findPart(path string) string {
	path = strings.TrimPrefix(path, module)
	for {
		if _, ok := allowedImports[path]; ok {
			return path
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return ""
		}
		path = path[:i]
	}
}

// TestImportsFollowLayers checks the imports of every package against allowedImports.
func TestImportsFollowLayers(t *testing.T) {
	list := listPackages(t)
	require.Greater(t, len(list), 8)
	for _, p := range list {
		from := findPart(p.ImportPath)
		require.NotEmpty(t, from, "%s: no entry in allowedImports", p.ImportPath)
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module) {
				continue
			}
			to := findPart(imp)
			if to != from && !slices.ContainsFunc(allowedImports[from], func(allowed string) bool { return to == allowed || strings.HasPrefix(to, allowed+"/") }) {
				t.Errorf("%s imports %s: %s may import only %v", p.ImportPath, imp, from, allowedImports[from])
			}
		}
	}
}

// TestCoresAreDeterministic checks that cores import no forbidden package, nor do the internal
// packages that they import: a lock in one of those would be a lock of the core.
func TestCoresAreDeterministic(t *testing.T) {
	checked, parts := map[string]bool{}, slices.Clone(cores)
	list := listPackages(t)
	for i := 0; i < len(parts); i++ {
		for _, p := range list {
			if findPart(p.ImportPath) != parts[i] {
				continue
			}
			checked[parts[i]] = true
			for _, imp := range p.Imports {
				require.NotContains(t, forbidden, imp, "%s: a core must not import this package", p.ImportPath)
				to := findPart(imp)
				if strings.HasPrefix(imp, module+"internal/") && to != "" && !slices.Contains(parts, to) {
					parts = append(parts, to)
				}
			}
		}
	}
	for _, name := range cores { // a moved core would not be checked
		require.True(t, checked[name], "%s: no such package", name)
	}
}
