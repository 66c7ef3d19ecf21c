package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// A level is the severity of a checkResult.
type level string

const (
	levelOK   level = "OK"
	levelWarn level = "WARN" // works, but slower or not for everyone
	levelFail level = "FAIL" // does not work
)

// A checkResult is the outcome of one check.
type checkResult struct {
	Level  level    `json:"level"`
	Check  string   `json:"check"`
	Detail string   `json:"detail"`
	Fix    []string `json:"fix,omitempty"` // commands, or advice when there is no command
}

// notTested names the conditions that doctor cannot check.
const notTested = "not tested: firewalls and the path to other hosts; UDP port 4791 must be open in both directions"

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the properties of this machine that the adapter needs, and print improvements",
		Long: "Checks socket buffers, offloads, port 4791, addresses and their MTU, and processors,\n" +
			"and exchanges data between two devices over real sockets. It changes nothing, and\n" +
			"prints the commands that improve a result. The exit status is 1 if a check fails.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			options, err := a.deviceOptions()
			if err != nil {
				return err
			}
			return a.reportChecks(evaluate(a.inspectMachine(c.Context(), options)))
		},
	}
}

// reportChecks writes the results. The error counts failed checks.
func (a *app) reportChecks(findings []checkResult) error {
	failed := 0
	for _, f := range findings {
		if f.Level == levelFail {
			failed++
		}
	}
	if a.json {
		err := a.writeJSON(struct {
			OK        bool          `json:"ok"`
			Checks    []checkResult `json:"checks"`
			NotTested string        `json:"not_tested"`
		}{failed == 0, findings, notTested})
		if err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			f.writeTo(a.stdout)
		}
		fmt.Fprintf(a.stdout, "\n%s\n", notTested)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(findings))
	}
	return nil
}

func (f checkResult) writeTo(w io.Writer) {
	fmt.Fprintf(w, "%-4s  %-16s  %s\n", f.Level, f.Check, f.Detail)
	for _, fix := range f.Fix {
		fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", 24), fix)
	}
}
