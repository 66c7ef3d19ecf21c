// Package matrix collects the results of a run of the tests against Linux and
// writes them as the tables of docs/rxe-matrix.md.
//
//	var m matrix.Matrix
//	programs := m.Table("Programs", "The programs.", "program", "softrnic is")
//	programs.Count("clean", 1, 1, "ibv_rc_pingpong", "server") // the cell is the sum
//	statuses.Set("rxe to softrnic", "same", "WRITE, wrong rkey")
//	statuses.Set("softrnic to rxe", fmt.Sprintf("differs (%d)", statuses.Note("The reason.")), "WRITE, wrong rkey")
//	err := m.WriteFile("docs/rxe-matrix.md", head)
//
// The output depends only on the results, so two runs of the same code give the same text.
package matrix

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// A Matrix is a list of tables. The zero value is empty. All methods of a Matrix and its tables
// are safe for concurrent use.
type Matrix struct {
	mu     sync.Mutex
	tables []*Table
}

// A Table has rows, identified by heading cells, columns and notes. All appear in the order of
// first use.
type Table struct {
	m            *Matrix
	title, about string
	heads        []string
	columns      []string
	rows         []*row
	notes        []string
}

type row struct {
	heads []string
	cells map[string]*cell // by column
}

// A cell counts passed checks, with an optional text to show instead.
type cell struct {
	text          string
	passed, total int
}

// Table returns the table with a title, and creates it at first use with a paragraph about it and
// the headings of the row headers.
func (m *Matrix) Table(title, about string, heads ...string) *Table {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.tables {
		if t.title == title {
			return t
		}
	}
	t := &Table{m: m, title: title, about: about, heads: heads}
	m.tables = append(m.tables, t)
	return t
}

// Count adds results to the cell in the given column and row.
func (t *Table) Count(column string, passed, total int, row ...string) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	c := t.cellAt(column, row)
	c.passed += passed
	c.total += total
}

// Set sets the text of a cell, shown unless a check failed there.
func (t *Table) Set(column, text string, row ...string) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.cellAt(column, row).text = text
}

// Note adds a numbered note below the table and returns its number, for the text of a cell. The
// same text is one note.
func (t *Table) Note(text string) int {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if i := slices.Index(t.notes, text); i >= 0 {
		return i + 1
	}
	t.notes = append(t.notes, text)
	return len(t.notes)
}

func (t *Table) cellAt(column string, heads []string) *cell {
	if len(heads) != len(t.heads) {
		panic(fmt.Sprintf("matrix: a row of %q has %d headings, not %d", t.title, len(t.heads), len(heads)))
	}
	if !slices.Contains(t.columns, column) {
		t.columns = append(t.columns, column)
	}
	at := slices.IndexFunc(t.rows, func(r *row) bool { return slices.Equal(r.heads, heads) })
	if at < 0 {
		at = len(t.rows)
		t.rows = append(t.rows, &row{slices.Clone(heads), make(map[string]*cell)})
	}
	r := t.rows[at]
	c := r.cells[column]
	if c == nil {
		c = &cell{}
		r.cells[column] = c
	}
	return c
}

// String returns the cell's text: "12", or "**11 of 12**" if a check failed.
func (c *cell) String() string {
	switch {
	case c == nil:
		return ""
	case c.passed < c.total:
		return fmt.Sprintf("**%d of %d**", c.passed, c.total)
	case c.text != "":
		return c.text
	}
	return fmt.Sprint(c.total)
}

// Totals returns the sums over all cells.
func (m *Matrix) Totals() (passed, total int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.tables {
		p, n := t.sumCells()
		passed, total = passed+p, total+n
	}
	return passed, total
}

func (t *Table) sumCells() (passed, total int) {
	for _, r := range t.rows {
		for _, c := range r.cells {
			passed, total = passed+c.passed, total+c.total
		}
	}
	return passed, total
}

// Markdown returns the document: a head, the totals and the tables.
func (m *Matrix) Markdown(head string) string {
	passed, total := m.Totals()
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(head), "\n\n") {
		b.WriteString(wrapText("", paragraph) + "\n")
	}
	fmt.Fprintf(&b, "**%d of %d checks passed.**\n", passed, total)
	for _, t := range m.tables {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", t.title, wrapText("", t.about))
		line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
		heads := slices.Concat(t.heads, t.columns)
		line(heads)
		line(slices.Repeat([]string{"---"}, len(heads)))
		for _, r := range t.rows {
			cells := slices.Clone(r.heads)
			for _, c := range t.columns {
				cells = append(cells, strings.ReplaceAll(r.cells[c].String(), "|", "\\|"))
			}
			line(cells)
		}
		if len(t.notes) > 0 {
			b.WriteString("\n")
		}
		for i, note := range t.notes {
			b.WriteString(wrapText(fmt.Sprintf("%d. ", i+1), note))
		}
	}
	return b.String()
}

// maxLine is the maximum length of a line outside of tables.
const maxLine = 120

// wrapText breaks a text at blanks into lines of at most maxLine bytes. The first line begins
// with indent, the others with as many blanks.
func wrapText(indent, text string) string {
	var b strings.Builder
	n := 0 // bytes of the current line
	for word := range strings.FieldsSeq(text) {
		switch {
		case n == 0:
			b.WriteString(indent)
			n = len(indent)
		case n+1+len(word) > maxLine:
			b.WriteString("\n" + strings.Repeat(" ", len(indent)))
			n = len(indent)
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += len(word)
	}
	return b.String() + "\n"
}

// WriteFile writes the document to a file.
func (m *Matrix) WriteFile(path, head string) error {
	return os.WriteFile(path, []byte(m.Markdown(head)), 0o644)
}
