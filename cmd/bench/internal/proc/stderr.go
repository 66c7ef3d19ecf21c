package proc

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
)

// tailLines is how much of a worker's stderr an error carries.
const tailLines = 40

// stderrTail keeps the last lines that a worker wrote to stderr.
type stderrTail struct {
	mu    sync.Mutex
	lines []string
}

func (t *stderrTail) addLine(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

func (t *stderrTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// copyLines copies r line by line to w, prefixed, and keeps the end of it. Long
// lines are cut into pieces.
func (t *stderrTail) copyLines(r io.Reader, w io.Writer, prefix string) {
	br := bufio.NewReaderSize(r, 16<<10)
	for {
		line, _, err := br.ReadLine()
		if err != nil {
			return
		}
		t.addLine(string(line))
		fmt.Fprintf(w, "%s%s\n", prefix, line)
	}
}

// lockedWriter lets workers share one writer, line by line.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
