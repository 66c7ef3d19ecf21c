package mpirun

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// A builder compiles Go packages, each once.
type builder struct {
	dir    string // of the programs, "" before the first
	stderr io.Writer
	built  map[string]string // the compiled program of each word
}

// removePrograms removes the compiled programs.
func (b *builder) removePrograms() error {
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir)
}

// build returns the file to execute for the first word of a command: the compiled program if the
// word names a Go package, or else the word.
func (b *builder) build(ctx context.Context, word string) (string, error) {
	dir, what, ok := parseGoSource(word)
	if !ok {
		return word, nil
	}
	if made, ok := b.built[word]; ok {
		return made, nil
	}
	if b.dir == "" {
		var err error
		if b.dir, err = os.MkdirTemp("", "softrnic-mpirun-"); err != nil {
			return "", err
		}
	}
	// Programs of one name do not meet, and ps shows it.
	out := filepath.Join(b.dir, strconv.Itoa(len(b.built)), strings.TrimSuffix(programName(word), ".go"))
	if runtime.GOOS == "windows" {
		out += ".exe"
	}
	args := []string{"build", "-o", out, what}
	if dir != "" {
		args = append([]string{"build", "-C", dir}, args[1:]...)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = b.stderr, b.stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("building %s: go %s: %w", word, strings.Join(args, " "), err)
	}
	if at, err := os.Stat(out); err != nil || !at.Mode().IsRegular() || runtime.GOOS != "windows" && at.Mode()&0o111 == 0 {
		return "", optionErrorf("%s: not a program: want package main", word)
	}
	if b.built == nil {
		b.built = map[string]string{}
	}
	b.built[word] = out
	return out, nil
}

// programName returns the name of the program built from a package.
func programName(word string) string {
	at, err := filepath.Abs(word)
	if err != nil {
		at = word
	}
	return filepath.Base(at)
}

// parseGoSource reports whether a word names Go source: a .go file, a directory with .go files, or
// an import path that is no program in PATH. The package path is relative to the directory dir.
func parseGoSource(word string) (dir, what string, ok bool) {
	at, err := os.Stat(word)
	switch {
	case err == nil && at.Mode().IsRegular() && strings.HasSuffix(word, ".go"):
		return filepath.Dir(word), filepath.Base(word), true
	case err == nil && at.IsDir():
		files, err := filepath.Glob(filepath.Join(word, "*.go"))
		return word, ".", err == nil && len(files) > 0
	case err == nil || filepath.IsAbs(word) || strings.HasPrefix(word, "."):
		return "", "", false
	}
	// example.org/x/cmd/y, which is no file here and no program.
	domain, _, path := strings.Cut(word, "/")
	return "", word, path && strings.Contains(domain, ".")
}
