package preloadtest

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A row is a line of symbols.txt.
type row struct{ version, name, place string }

// readSymbols reads symbols.txt.
func readSymbols(t *testing.T) (rows []row) {
	t.Helper()
	text, err := os.ReadFile("../preload/symbols.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		require.Len(t, fields, 3, line)
		rows = append(rows, row{fields[0], fields[1], fields[2]})
	}
	return rows
}

// exportedFunctions returns the functions that a shared library defines, as name or name@version.
func exportedFunctions(t *testing.T, file string) (list []string) {
	t.Helper()
	f, err := elf.Open(file)
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		name := s.Name
		if s.HasVersion && s.Version != "" {
			name += "@" + s.Version
		}
		list = append(list, name)
	}
	return list
}

// installedLibrary returns the path of a library of rdma-core, or skips the test.
func installedLibrary(t *testing.T, name string) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib/*-linux-gnu/", "/usr/lib64/", "/usr/lib/"} {
		if files, _ := filepath.Glob(pattern + name); len(files) > 0 {
			return files[0]
		}
	}
	t.Skip("not installed: " + name)
	return ""
}

// TestAllPublicFunctions checks that symbols.txt has every public function of the installed library: one that is
// missing would reach rdma-core with an object of ours and read its private words.
func TestAllPublicFunctions(t *testing.T) {
	file := installedLibrary(t, "libibverbs.so.1")
	public := map[string]bool{}
	for _, name := range exportedFunctions(t, file) {
		if name, version, ok := strings.Cut(name, "@IBVERBS_1."); ok && version != "" {
			public[name] = true
		}
	}
	require.Greater(t, len(public), 60)
	for _, r := range readSymbols(t) {
		delete(public, r.name)
	}
	require.Empty(t, public, "functions of %s that symbols.txt lacks", file)
}

// TestExports checks the names that the built libraries define.
func TestExports(t *testing.T) {
	forEach(t, func(t *testing.T, l libraries) {
		preload := exportedFunctions(t, l.preload)
		standin := exportedFunctions(t, filepath.Join(l.standin, "libibverbs.so.1"))
		verbs := 0
		for _, r := range readSymbols(t) {
			require.Equal(t, r.place != "library", slices.Contains(preload, r.name), r.name)
			versioned := r.name + "@" + r.version
			if r.place != "library" && !strings.Contains(r.version, "PRIVATE") {
				require.Contains(t, standin, versioned)
				verbs++
			}
		}
		require.Greater(t, verbs, 60)
		for _, name := range []string{"ibv_wc_status_str@IBVERBS_1.1", "mbps_to_ibv_rate@IBVERBS_1.1"} {
			require.Contains(t, standin, name)
		}
		for _, name := range preload { // no helper is visible
			require.False(t, strings.HasPrefix(name, "softrnic_"), name)
		}
	})
}
