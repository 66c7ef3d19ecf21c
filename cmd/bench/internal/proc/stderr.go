package proc

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
)

// tailLines is the number of stderr lines that a WorkerError carries.
const tailLines = 40

// A stderrTail keeps the last lines of a worker's stderr.
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

// copyLines copies r line by line to w, with a prefix, and keeps the last lines. Long lines are
// split.
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

// A lockedWriter lets workers share one writer.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
