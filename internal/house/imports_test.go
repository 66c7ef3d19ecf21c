package house

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

// floors says what each part of the module may import of the others. A part is
// a folder with everything below it; the longest match counts.
var floors = map[string][]string{
	"verbs":                    {},
	"wire":                     {},
	"wire/mad":                 {},
	"wire/bsdh":                {},
	"reliability":              {"wire"},
	"reliability/nack":         {"wire", "reliability", "internal/fifo", "internal/place"},
	"internal/fifo":            {},
	"internal/hostaddr":        {},
	"internal/rankaddr":        {"internal/hostaddr", "mpi/pmi"},
	"internal/place":           {},
	"qp":                       {"verbs", "wire", "reliability", "internal/fifo", "internal/place"},
	"internal/link":            {"wire", "internal/order", "internal/place"},
	"internal/link/memory":     {"wire", "internal/link"},
	"internal/link/impair":     {"wire", "internal/link"},
	"internal/link/capture":    {"wire", "internal/link"},
	"rnic":                     {"verbs", "wire", "reliability", "qp", "internal/environment", "internal/hostaddr", "internal/ifwatch", "internal/link", "internal/debug/endpoint", "internal/pages", "internal/thread"},
	"rnic/rnicdebug":           {"rnic", "internal/debug"},
	"cm":                       {"verbs", "wire", "cm/protocol"},
	"cm/protocol":              {"wire/mad", "wire/bsdh"},
	"internal/cpus":            {},
	"internal/ifwatch":         {},
	"internal/moment":          {},
	"internal/netns":           {},
	"internal/order":           {},
	"internal/pages":           {"internal/place"},
	"internal/size":            {},
	"internal/cmdline":         {},
	"internal/environment":     {},
	"internal/thread":          {},
	"mpi/shm":                  {"internal/order"},
	"rdm":                      {"verbs", "wire", "cm", "reliability", "reliability/nack", "rdm/datagram", "internal/fifo", "internal/place"},
	"rdm/datagram":             {"verbs", "wire", "reliability", "reliability/nack"},
	"sdp":                      {"internal/moment", "internal/pages", "internal/place", "verbs", "cm", "wire", "wire/bsdh", "sdp/flow", "sdp/protocol"},
	"sdp/flow":                 {},
	"sdp/protocol":             {"verbs", "wire/bsdh", "sdp/flow"},
	"examples/acp":             {"verbs", "rnic", "acp"},
	"examples/sdp":             {"rnic", "sdp"},
	"acp":                      {"internal/moment", "internal/rankaddr", "verbs", "cm", "mpi/pmi", "acp/fabric", "acp/protocol"},
	"acp/data":                 {"acp"},
	"acp/protocol":             {},
	"acp/fabric":               {"verbs", "cm", "rdm"},
	"acp/acptest":              {"verbs", "rnic", "mpi/pmi", "acp"},
	"datacutter":               {},
	"mpi/datatype":             {},
	"mpi/coll":                 {},
	"mpi":                      {"internal/rankaddr", "internal/thread", "verbs", "mpi/coll", "mpi/datatype", "mpi/engine", "mpi/envelope", "mpi/fabric", "mpi/hang", "mpi/match", "mpi/pmi", "mpi/protocol", "mpi/rma", "mpi/shm"},
	"mpi/rma":                  {"mpi/datatype"},
	"mpi/hang":                 {},
	"mpi/nas":                  {"mpi"},
	"mpi/osu":                  {"mpi"},
	"mpi/imb":                  {"mpi"},
	"mpi/mpitest":              {"verbs", "rnic", "mpi"},
	"examples/mpi":             {"verbs", "rnic", "mpi"},
	"mpi/engine":               {"internal/moment", "mpi/fabric", "mpi/match", "mpi/protocol"},
	"mpi/fabric":               {"internal/hostaddr", "internal/order", "internal/thread", "verbs", "cm", "reliability/nack", "rdm/datagram", "mpi/envelope", "mpi/protocol"},
	"mpi/protocol":             {"internal/fifo", "mpi/envelope", "mpi/match"},
	"mpi/envelope":             {},
	"mpi/match":                {},
	"mpi/pmi":                  {"mpi/pmi/wire"},
	"mpi/pmi/wire":             {},
	"internal/sim":             {"verbs", "wire", "reliability", "qp", "internal/link", "rnic"},
	"internal/forward":         {},
	"internal/house":           {},
	"internal/misuse":          {},
	"internal/ownaddr":         {},
	"internal/tools":           {"verbs", "wire", "cm", "sdp", "internal/link"},
	"internal/tools/mpirun":    {"internal/cpus", "internal/hostaddr", "mpi/pmi"},
	"internal/tools/toolstest": {"verbs", "rnic", "cm"},
	"interop":                  {"verbs", "wire", "rnic", "internal/link"},
	"internal/bench":           {"internal/cpus", "internal/size", "internal/thread", "verbs", "wire", "rnic", "internal/link", "qp", "rdm", "sdp", "datacutter", "mpi", "acp"},
	"cmd":                      {"internal/cmdline", "internal/cpus", "internal/environment", "internal/size", "verbs", "wire", "rnic", "internal/link", "internal/bench", "qp", "internal/debug", "internal/tools", "sdp", "mpi"},
	"internal/debug":           {"verbs", "wire", "rnic", "qp", "internal/link", "internal/debug/endpoint"},
	"internal/debug/endpoint":  {},
}

// pure lists the parts that are cores without I/O, and what they may not use
// of the standard library.
var (
	pure = []string{"internal/fifo", "wire", "wire/mad", "wire/bsdh", "reliability", "reliability/nack", "qp", "cm/protocol", "sdp/flow", "sdp/protocol",
		"mpi/datatype", "mpi/coll", "mpi/envelope", "mpi/match", "mpi/protocol", "mpi/rma", "mpi/hang", "acp/protocol"}
	forbidden = []string{"net", "os", "sync", "time", "math/rand", "math/rand/v2", "crypto/rand", "syscall", "context", "log", "log/slog"}
)

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (list []pkg) {
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

// part returns the entry of floors that a package belongs to.
func part(path string) string {
	path = strings.TrimPrefix(path, module)
	for {
		if _, ok := floors[path]; ok {
			return path
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return ""
		}
		path = path[:i]
	}
}

func TestImportsGoDown(t *testing.T) {
	list := packages(t)
	require.Greater(t, len(list), 8)
	for _, p := range list {
		from := part(p.ImportPath)
		require.NotEmpty(t, from, "%s has no floor: add it to the table", p.ImportPath)
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module) {
				continue
			}
			to := part(imp)
			if to != from && !slices.ContainsFunc(floors[from], func(allowed string) bool { return to == allowed || strings.HasPrefix(to, allowed+"/") }) {
				t.Errorf("%s imports %s: %s may import %v only", p.ImportPath, imp, from, floors[from])
			}
		}
	}
}

func TestCoresArePure(t *testing.T) {
	for _, p := range packages(t) {
		if !slices.Contains(pure, part(p.ImportPath)) {
			continue
		}
		for _, imp := range p.Imports {
			require.NotContains(t, forbidden, imp, "%s is a core without I/O, locks, clock and chance", p.ImportPath)
		}
	}
}
