package scenario

import (
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/rnic/internal/sim"
)

// separator separates commands from output.
const separator = "----"

// Run runs a script and returns it with the actual output of its commands. The
// error names the line of an invalid command or a failed expectation; then the
// text ends there.
func Run(text string) (string, error) {
	s := sim.New(1)
	r := newRunner(s)
	defer r.close()
	var out strings.Builder
	var output string // of the block so far
	inOutput := false // between separator and blank line
	commands := 0     // of the block so far
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		last := i == len(lines)-1
		switch {
		case inOutput:
			inOutput = line != ""
			if inOutput {
				continue // replaced already
			}
		case line == separator:
			if output == "" {
				output = "ok\n"
			}
			out.WriteString(separator + "\n" + output)
			output, commands, inOutput = "", 0, true
			continue
		case line == "" || strings.HasPrefix(line, "#"):
		default:
			commands++
			printed, err := r.runCommand(line)
			if err != nil {
				return out.String(), fmt.Errorf("line %d: %s: %w", i+1, line, err)
			}
			output += printed
		}
		out.WriteString(line)
		if !last {
			out.WriteByte('\n')
		}
	}
	if commands > 0 {
		return out.String(), fmt.Errorf("the last block has no %s", separator)
	}
	return out.String(), nil
}
