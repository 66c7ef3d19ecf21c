// Package preloadtest tests the preloaded library with an engine written for the tests.
package preloadtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A toolchain builds for one architecture. The emulator, if any, runs the programs.
type toolchain struct{ cc, emulator, sysroot string }

// toolchains are those of this machine and, where Debian's cross compiler and qemu-user-static are installed, of arm64.
var toolchains = map[string]toolchain{
	"native": {cc: "gcc"},
	"arm64":  {cc: "aarch64-linux-gnu-gcc", emulator: "qemu-aarch64-static", sysroot: "/usr/aarch64-linux-gnu"},
}

// libraries are the built libraries and programs of the tests.
type libraries struct {
	toolchain
	dir, preload, engine string
	standin              string // directory
}

// buildAll builds the preloaded library, the stand-in library, the engine of the tests and its programs in a directory.
func (c toolchain) buildAll(dir string) (libraries, error) {
	l := libraries{c, dir, filepath.Join(dir, "libsoftrnic-preload.so"), filepath.Join(dir, "libsoftrnic-engine.so"),
		filepath.Join(dir, "standin/libibverbs.so.1.d")}
	strict := []string{"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"}
	for _, command := range [][]string{
		{"../build.sh", dir, "preload"},
		append(append([]string{c.cc}, strict...), l.engine, "-fPIC", "-shared", "testdata/engine.c"),
		append(append([]string{c.cc}, strict...), filepath.Join(dir, "calls"), "testdata/calls.c", "-L", l.standin, "-l:libibverbs.so.1"),
		append(append([]string{c.cc}, strict...), filepath.Join(dir, "paths"), "testdata/paths.c"),
	} {
		build := exec.Command(command[0], command[1:]...)
		build.Env = append(os.Environ(), "CC="+c.cc)
		if out, err := build.CombinedOutput(); err != nil || len(out) > 0 {
			return l, errors.Join(fmt.Errorf("%s\n%s", strings.Join(command, " "), out), err)
		}
	}
	return l, nil
}

// forEach runs a test for each toolchain that is installed.
func forEach(t *testing.T, test func(t *testing.T, l libraries)) {
	for name, c := range toolchains {
		t.Run(name, func(t *testing.T) {
			for _, program := range []string{c.cc, c.emulator} {
				if _, err := exec.LookPath(program); program != "" && err != nil {
					t.Skip("not installed: " + program)
				}
			}
			l, err := c.buildAll(t.TempDir())
			require.NoError(t, err)
			test(t, l)
		})
	}
}

// run runs a program of the tests with the preloaded library and the stand-in library.
func (l libraries) run(t *testing.T, environ []string, program string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	environ = append([]string{"LD_PRELOAD=" + l.preload, "LD_LIBRARY_PATH=" + l.standin}, environ...)
	args = append([]string{filepath.Join(l.dir, program)}, args...)
	if l.emulator != "" {
		for _, v := range environ { // of the program, not of the emulator
			args = append([]string{"-E", v}, args...)
		}
		args = append([]string{l.emulator, "-L", l.sysroot}, args...)
		environ = nil
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), environ...)
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	err = c.Run()
	return out.String(), errOut.String(), err
}

// TestCalls checks arguments in registers, errno, concurrent first calls and a first call in a child of fork.
func TestCalls(t *testing.T) {
	forEach(t, func(t *testing.T, l libraries) {
		for name, want := range map[string]string{
			"integers": "654321\n654321\n",
			"doubles":  strings.Repeat("44284\n", 2),
			"errno":    "1\n",
			"threads":  "0\n",
			"fork":     "0\n",
			"opened":   "0\n", // by dlopen and dlvsym
		} {
			stdout, stderr, err := l.run(t, nil, "calls", name)
			require.NoError(t, err, "%s: %s", name, stderr)
			require.Equal(t, want, stdout, name)
			require.Equal(t, "engine loaded\n", stderr, name)
		}
	})
}

// TestOpenedBesideInstalled checks that a program that opens the installed library gets the functions of the engine.
func TestOpenedBesideInstalled(t *testing.T) {
	installedLibrary(t, "libibverbs.so.1")
	forEach(t, func(t *testing.T, l libraries) {
		if l.emulator != "" {
			t.Skip("the installed libraries are native")
		}
		l.standin = ""
		stdout, stderr, err := l.run(t, nil, "calls", "opened")
		require.NoError(t, err, stderr)
		require.Equal(t, "0\n", stdout)
		require.Equal(t, "engine loaded\n", stderr)
	})
}

// TestOffInPlugin checks that with SOFTRNIC_DROPIN=off a plugin gets the functions of the installed library, which is not
// in the search order of the program.
func TestOffInPlugin(t *testing.T) {
	library := installedLibrary(t, "libibverbs.so.1")
	forEach(t, func(t *testing.T, l libraries) {
		if l.emulator != "" {
			t.Skip("the installed libraries are native")
		}
		plugin, program := filepath.Join(l.dir, "plugin.so"), filepath.Join(l.dir, "program")
		for _, args := range [][]string{
			{"-fPIC", "-shared", "-o", plugin, "testdata/plugin.c", library},
			{"-o", program, "testdata/host.c"},
		} {
			out, err := exec.Command(l.cc, args...).CombinedOutput()
			require.NoError(t, err, string(out))
		}
		l.standin = ""
		stdout, stderr, err := l.run(t, []string{"SOFTRNIC_DROPIN=off"}, "program", plugin)
		require.NoError(t, err, stderr)
		require.Equal(t, "1\n", stdout)
		require.Empty(t, stderr)
	})
}

// TestEngineOnDemand checks that a program without a call loads no engine, and one with SOFTRNIC_DROPIN=off none either.
func TestEngineOnDemand(t *testing.T) {
	forEach(t, func(t *testing.T, l libraries) {
		stdout, stderr, err := l.run(t, nil, "calls", "strings") // of the stand-in library
		require.NoError(t, err)
		require.Equal(t, "transport retry counter exceeded, CQ error\n", stdout)
		require.Empty(t, stderr)

		for _, off := range []string{"off", "OFF"} {
			_, stderr, err = l.run(t, []string{"SOFTRNIC_DROPIN=" + off, "SOFTRNIC_ENGINE=/nonexistent"}, "calls", "missing")
			require.Equal(t, 127, err.(*exec.ExitError).ExitCode())
			require.Equal(t, "softrnic: ibv_query_port: neither the engine nor an installed library has this function\n", stderr)
		}
	})
}

// TestMissingEngine checks the text for an engine that does not exist, once.
func TestMissingEngine(t *testing.T) {
	forEach(t, func(t *testing.T, l libraries) {
		_, stderr, err := l.run(t, []string{"SOFTRNIC_ENGINE=/nonexistent.so"}, "calls", "missing")
		require.Error(t, err)
		require.Equal(t, 1, strings.Count(stderr, "cannot load the engine"), stderr)
		require.Contains(t, stderr, "/nonexistent.so")
	})
}

// newTree creates an engine's tree with one device and returns its root.
func newTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"infiniband/softrnic0/ports/1/gids/0": "gid\n",
		"infiniband_verbs/uverbs0/ibdev":      "softrnic0\n",
	} {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink("../../infiniband_verbs/uverbs0", filepath.Join(root, "infiniband/softrnic0/link")))
	return root
}

// walks returns the lines of walks through a directory with one file.
func walks(dir, file string) string {
	base := filepath.Base(dir)
	d, f, inner := dir+" "+base+" 0 0\n", dir+"/"+file+" "+file+" 1 1\n", "ftw64 "+dir+" 0\nftw64 "+dir+"/"+file+" 1\nftw64 7\n"
	return "nftw " + d + "nftw " + f + "nftw yes\n" +
		"nftw64 " + f + "nftw64 " + d + "nftw64 yes\n" +
		"ftw " + dir + " 0\n" + inner + "ftw " + dir + "/" + file + " 1\nftw yes\n"
}

// lines returns the lines that every name prints with text.
func lines(names, text string) string {
	var b strings.Builder
	for _, name := range strings.Fields(names) {
		b.WriteString(name + " " + text + "\n")
	}
	return b.String()
}

// matches returns the lines of a pattern that matches one path, which GLOB_MARK marks.
func matches(path, mark string) string {
	return "glob yes\nglob " + path + "\nglob64 yes\nglob64 " + path + mark + "\n"
}

const (
	statFunctions = "stat stat64 lstat lstat64 fstatat fstatat64 statx access faccessat"
	openFunctions = "open open64 openat openat64 fopen fopen64"
)

// TestPaths checks the translation of each function with the path of a file, a link, a directory and a device.
func TestPaths(t *testing.T) {
	forEach(t, func(t *testing.T, l libraries) {
		environ := []string{"TEST_ROOT=" + newTree(t)}
		for _, c := range []struct{ kind, path, want string }{
			{"files", "/sys/class/infiniband/softrnic0/ports/1/gids/0", lines(statFunctions, "yes") + lines(openFunctions, "gid")},
			{"files", "/sys/class/infiniband_verbs/uverbs0/ibdev", lines(statFunctions, "yes") + lines(openFunctions, "softrnic0")},
			{"files", "/dev/infiniband/uverbs0", lines(statFunctions, "yes") + lines(openFunctions, "")},
			{"files", "/dev/infiniband/rdma_cm", lines(statFunctions, "yes") + lines(openFunctions, "")},
			{"files", "/dev/infiniband/uverbs1", lines(statFunctions+" "+openFunctions, "No such file or directory")},
			{"files", "/dev/infiniband/umad0", lines(statFunctions+" "+openFunctions, "No such file or directory")},
			{"links", "/sys/class/infiniband/softrnic0/link", lines("readlink readlinkat", "../../infiniband_verbs/uverbs0") + lines("realpath canonicalize_file_name", "yes")},
			{"directory", "/sys/class/infiniband", "opendir yes\n" + lines("opendir scandir scandir64", "softrnic0")},
			{"directory", "/sys/class/infiniband/", "opendir yes\n" + lines("opendir scandir scandir64", "softrnic0")},
			{"relative", "infiniband/softrnic0/ports/1/gids/0", strings.Repeat("fstatat yes\nfaccessat yes\nopenat gid\nstat yes\nopen gid\n", 2)},
			{"relative", "infiniband_verbs/uverbs0/ibdev", strings.Repeat("fstatat yes\nfaccessat yes\nopenat softrnic0\nstat yes\nopen softrnic0\n", 2)},
			{"glob", "/sys/class/infiniband/*/ports/1/gids/[0-9]", matches("/sys/class/infiniband/softrnic0/ports/1/gids/0", "")},
			{"glob", "/sys/class/infiniband/softrnic?", matches("/sys/class/infiniband/softrnic0", "/")},
			{"glob", "/dev/infiniband/uverbs*", matches("/dev/infiniband/uverbs0", "")},
			{"walk", "/sys/class/infiniband/softrnic0/ports/1/gids", walks("/sys/class/infiniband/softrnic0/ports/1/gids", "0")},
			{"walk", "/sys/class/infiniband/softrnic0/ports/1/gids//", walks("/sys/class/infiniband/softrnic0/ports/1/gids", "0")},
			{"directory", "/dev/infiniband", "opendir yes\n" + lines("opendir scandir scandir64", "uverbs0")},
		} {
			stdout, stderr, err := l.run(t, environ, "paths", c.kind, c.path)
			require.NoError(t, err)
			require.Equal(t, c.want, stdout, c.path)
			require.Equal(t, "engine loaded\n", stderr)
		}
	})
}

// TestOtherPaths checks that other paths, and those of an engine without a tree, are left alone.
func TestOtherPaths(t *testing.T) {
	forEach(t, func(t *testing.T, l libraries) {
		file := filepath.Join(t.TempDir(), "file")
		stdout, stderr, err := l.run(t, nil, "paths", "create", file)
		require.NoError(t, err)
		require.Equal(t, "open \n", stdout)
		require.Empty(t, stderr, "no engine")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&^0o640, "the mode of the new file")
		require.NotZero(t, info.Mode().Perm()&0o400)

		for _, path := range []string{"/sys/class/infinibands", "/dev/infiniband2", "/sys/class/infiniband_mad/none"} {
			_, stderr, err := l.run(t, nil, "paths", "files", path)
			require.NoError(t, err)
			require.Empty(t, stderr, path)
		}
		stdout, _, err = l.run(t, nil, "paths", "files", "/sys/class/infiniband/none") // no TEST_ROOT
		require.NoError(t, err)
		require.Equal(t, lines(statFunctions+" "+openFunctions, "No such file or directory"), stdout)
	})
}
