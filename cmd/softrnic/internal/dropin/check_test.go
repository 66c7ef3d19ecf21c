package dropin_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/dropin"
)

// TestCheckBinary checks the reason for each kind of program.
func TestCheckBinary(t *testing.T) {
	l := newLibraries(t)
	dir := t.TempDir()
	linker := writeFile(t, filepath.Join(dir, "ld-linux-x86-64.so.2"), nil)
	musl := writeFile(t, filepath.Join(dir, "ld-musl-x86_64.so.1"), nil)
	for _, c := range []struct {
		name string
		text []byte
		want string
	}{
		{"dynamic", makeELF(elf.EM_X86_64, linker), ""},
		{"static", makeELF(elf.EM_X86_64, ""), "it is statically linked and has no dynamic linker"},
		{"musl", makeELF(elf.EM_X86_64, musl), "it is linked with musl"},
		{"other", makeELF(elf.EM_AARCH64, linker), "it is for aarch64, 64 bits, the libraries are for x86_64, 64 bits"},
		{"homeless", makeELF(elf.EM_X86_64, filepath.Join(dir, "none.so")), "its dynamic linker is missing"},
		{"text", []byte("echo without a first line\n"), ""}, // the kernel or the shell decides
	} {
		err := l.Check(writeFile(t, filepath.Join(dir, c.name), c.text))
		if c.want == "" {
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorIs(t, err, dropin.ErrUnfit, c.name)
		require.ErrorContains(t, err, filepath.Join(dir, c.name)+": softrnic cannot reach this program: ")
		require.ErrorContains(t, err, c.want)
	}
	require.NoError(t, l.Check(filepath.Join(dir, "absent"))) // the error is that of exec
}

// TestCheckScript checks that the interpreter of a script is checked, also behind env.
func TestCheckScript(t *testing.T) {
	l := newLibraries(t)
	dir := t.TempDir()
	linker := writeFile(t, filepath.Join(dir, "ld.so"), nil)
	static := writeFile(t, filepath.Join(dir, "static"), makeELF(elf.EM_X86_64, ""))
	dynamic := writeFile(t, filepath.Join(dir, "dynamic"), makeELF(elf.EM_X86_64, linker))
	env := writeFile(t, filepath.Join(dir, "env"), makeELF(elf.EM_X86_64, linker))
	t.Setenv("PATH", dir)
	script := filepath.Join(dir, "script")
	for line, want := range map[string]string{
		"#!" + dynamic + "\n":                       "",
		"#! " + static + " -x\n":                    "statically linked",
		"#!" + env + " static\n":                    "statically linked",
		"#!" + env + " -S A=1 static -u\n":          "statically linked",
		"#!" + env + " dynamic":                     "",
		"#!" + filepath.Join(dir, "none") + "\n:\n": "interpreter " + filepath.Join(dir, "none"),
		"#!" + script + "\n":                        "more than 5 interpreters",
	} {
		err := l.Check(writeFile(t, script, []byte(line)))
		if want == "" {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorContains(t, err, want, line)
	}
	// A script that a script interprets.
	writeFile(t, filepath.Join(dir, "inner"), []byte("#!"+static+"\n"))
	err := l.Check(writeFile(t, script, []byte("#!"+filepath.Join(dir, "inner")+"\n")))
	require.ErrorContains(t, err, static+": softrnic cannot reach this program")
}

// TestCheckUnreadable checks that a file that only the kernel may read passes.
func TestCheckUnreadable(t *testing.T) {
	l := newLibraries(t)
	file := writeFile(t, filepath.Join(t.TempDir(), "secret"), makeELF(elf.EM_X86_64, ""))
	require.NoError(t, os.Chmod(file, 0o111))
	if err := l.Check(file); os.Getuid() != 0 {
		require.NoError(t, err)
	}
}
