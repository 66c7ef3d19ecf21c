package dropin

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrUnfit reports that a program would run without the preloaded library.
var ErrUnfit = errors.New("softrnic cannot reach this program")

// maxInterpreters is the maximum depth of scripts whose interpreter is a script, as in the kernel.
const maxInterpreters = 5

// Check returns an error that wraps ErrUnfit if the program at path would run without the
// preloaded library: it is static, of another architecture or C library, runs with other privileges
// than its caller, or needs functions of rdma-core that softrnic lacks. Of a script it checks the
// interpreter. A file that it cannot read passes: the kernel may still run it.
func (l Libraries) Check(path string) error {
	for range maxInterpreters {
		f, err := os.Open(path)
		if err != nil {
			return nil
		}
		interpreter, err := readInterpreter(f)
		if err == nil && interpreter == "" {
			err = l.checkBinary(path, f)
		}
		f.Close()
		if err != nil || interpreter == "" {
			return err
		}
		if _, err := os.Stat(interpreter); err != nil {
			return fmt.Errorf("%s: script: interpreter %s: %w", path, interpreter, err)
		}
		path = interpreter
	}
	return fmt.Errorf("%s: script: more than %d interpreters", path, maxInterpreters)
}

// readInterpreter returns the program that runs a script, "" if the file is no script. That of
// "#!/usr/bin/env NAME" is NAME.
func readInterpreter(f io.ReadSeeker) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	line, script := strings.CutPrefix(line, "#!")
	words := strings.Fields(line)
	if !script || len(words) == 0 {
		return "", nil
	}
	if filepath.Base(words[0]) == "env" {
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
				continue
			}
			if found, err := exec.LookPath(word); err == nil {
				return filepath.Abs(found)
			}
			break
		}
	}
	return words[0], nil
}

// unfit returns an error that wraps ErrUnfit.
func unfit(path, format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", path, ErrUnfit, fmt.Sprintf(format, args...))
}

// checkBinary checks an executable.
func (l Libraries) checkBinary(path string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if secure := securityOf(path, info); secure != "" {
		return unfit(path, "it has %s, so the dynamic linker ignores LD_PRELOAD; run a copy without, or run softrnic as the user it runs as", secure)
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return nil // a format that only the kernel knows
	}
	own, err := elf.Open(l.Preload())
	if err != nil {
		return fmt.Errorf("drop-in libraries: %w", err)
	}
	defer own.Close()
	if f.Machine != own.Machine || f.Class != own.Class {
		return unfit(path, "it is for %s, the libraries are for %s", describeMachine(f), describeMachine(own))
	}
	linker := readLinker(f)
	switch {
	case linker == "":
		return unfit(path, "it is statically linked and has no dynamic linker; link it dynamically, with -libverbs -lrdmacm")
	case strings.Contains(filepath.Base(linker), "musl"):
		return unfit(path, "it is linked with musl (%s), the libraries with glibc", linker)
	}
	if _, err := os.Stat(linker); err != nil {
		return unfit(path, "its dynamic linker is missing: %v", err)
	}
	return l.checkFunctions(path, f, own)
}

// describeMachine returns the architecture of a file, for example "x86_64, 64 bits".
func describeMachine(f *elf.File) string {
	name := strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
	return fmt.Sprintf("%s, %d bits", name, 32*int(f.Class))
}

// readLinker returns the path of the dynamic linker of a program, "" if it is static.
func readLinker(f *elf.File) string {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err == nil {
				return strings.TrimRight(string(name), "\x00")
			}
		}
	}
	return ""
}

// checkFunctions checks that the functions of rdma-core that a program imports have versions and
// names known to the preloaded library.
func (l Libraries) checkFunctions(path string, f, own *elf.File) error {
	needed, err := f.ImportedLibraries()
	if err != nil {
		return nil
	}
	for _, name := range needed {
		stem, _, _ := strings.Cut(name, ".so")
		for _, known := range []string{verbsLibrary, cmLibrary} {
			if strings.HasPrefix(known, stem+".so") && name != known {
				return unfit(path, "it is linked with %s, an ABI that softrnic does not know: it knows %s", name, known)
			}
		}
	}
	if slices.Contains(needed, cmLibrary) && !isInstalled(cmLibrary, os.Environ(), path) {
		return unfit(path, "it needs %s, which is not installed; Debian: apt-get install librdmacm1", cmLibrary)
	}
	imported, err := f.ImportedSymbols()
	if err != nil {
		return nil
	}
	imported = slices.DeleteFunc(imported, func(s elf.ImportedSymbol) bool {
		return s.Library != verbsLibrary || strings.Contains(s.Version, "PRIVATE")
	})
	if len(imported) == 0 {
		return nil
	}
	known, err := l.knownFunctions(own)
	if err != nil {
		return fmt.Errorf("drop-in libraries: %w", err)
	}
	for _, s := range imported {
		if !known[s.Name] {
			return unfit(path, "it needs %s of %s, version %s, which softrnic does not have", s.Name, s.Library, s.Version)
		}
	}
	return nil
}

// knownFunctions returns the functions of the preloaded library and of the stand-in library.
func (l Libraries) knownFunctions(own *elf.File) (map[string]bool, error) {
	known := map[string]bool{}
	add := func(f *elf.File) error {
		symbols, err := f.DynamicSymbols()
		for _, s := range symbols {
			if s.Section != elf.SHN_UNDEF {
				known[s.Name] = true
			}
		}
		return err
	}
	if err := add(own); err != nil {
		return nil, err
	}
	f, err := elf.Open(filepath.Join(l.standInDir(verbsLibrary), verbsLibrary))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return known, add(f)
}
