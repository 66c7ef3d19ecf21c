package dropin_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/dropin"
)

// makeELF returns a program of 64 bits with a program header that names its dynamic linker, if any.
func makeELF(machine elf.Machine, linker string) []byte {
	const headerSize, progSize = 64, 56
	h := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(machine), Version: 1, Ehsize: headerSize, Phentsize: progSize, Phoff: headerSize}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	prog := elf.Prog64{Type: uint32(elf.PT_LOAD)}
	if linker != "" {
		prog = elf.Prog64{Type: uint32(elf.PT_INTERP), Off: headerSize + progSize, Filesz: uint64(len(linker)) + 1}
	}
	h.Phnum = 1
	var b bytes.Buffer
	for _, part := range []any{h, prog, append([]byte(linker), 0)} {
		_ = binary.Write(&b, binary.LittleEndian, part) // a buffer accepts everything
	}
	return b.Bytes()
}

// writeFile writes an executable file and returns its path.
func writeFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, text, 0o755))
	return name
}

// newLibraries returns a directory with libraries for x86_64 without content.
func newLibraries(t *testing.T) dropin.Libraries {
	t.Helper()
	l := dropin.Libraries{Dir: t.TempDir()}
	files := []string{l.Preload(), l.Engine()}
	for _, name := range dropin.RDMALibraries {
		files = append(files, filepath.Join(l.StandInDir(name), name))
	}
	for _, file := range files {
		writeFile(t, file, makeELF(elf.EM_X86_64, ""))
	}
	return l
}
