package ledger

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
)

// AuditPath is the path of the page that answers each item of the papers, from the root of the repository.
const AuditPath = "docs/papers-audit.md"

var quotedWord = regexp.MustCompile("`([^`]+)`")

// Audit returns the page with the outcomes of the experiments that each row names in its last column.
func Audit(page string, runs map[string]report.Saved) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		cells := auditCells(line)
		if cells == nil {
			b.WriteString(line)
			continue
		}
		cells[4] = countOutcomes(cells[3], runs)
		b.WriteString(strings.ReplaceAll("| "+strings.Join(cells, " | ")+" |\n", "|  |", "| |"))
	}
	return b.String()
}

// auditCells returns the five cells of the row of an item, or nil for other lines.
func auditCells(line string) []string {
	cells := strings.Split(strings.TrimSpace(line), "|")
	if len(cells) != 7 {
		return nil
	}
	cells = cells[1:6]
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	if _, err := strconv.Atoi(cells[0]); err != nil {
		return nil
	}
	return cells
}

// countOutcomes returns the number of outcomes of each word of the experiments that a text names.
func countOutcomes(text string, runs map[string]report.Saved) string {
	var outcomes []bench.Outcome
	for _, m := range quotedWord.FindAllStringSubmatch(text, -1) {
		if run, ok := runs[m[1]]; ok {
			outcomes = append(outcomes, run.Outcomes...)
		}
	}
	return bench.Count(outcomes)
}

// writeAudit brings the outcomes of the page at path up to date. Without a page it does nothing.
func writeAudit(path string, runs map[string]report.Saved) error {
	page, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(Audit(string(page), runs)), 0o644)
}
