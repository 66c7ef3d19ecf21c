package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/internal/debug"
)

type captureFlags struct {
	of, file string
	time     time.Duration
}

func (a *app) captureCommand() *cobra.Command {
	var f captureFlags
	c := &cobra.Command{
		Use:   "capture --of TARGET -w FILE",
		Short: "Write the packets of a running process to a file for Wireshark",
		Long: "Makes a process that has a debug endpoint (SOFTRNIC_DEBUG=auto) write what its device\n" +
			"sends and receives to a pcapng file, until interrupted or for as long as --for says. No\n" +
			"privilege is needed. A name that ends in .gz or .zst makes a compressed file, which\n" +
			"Wireshark reads as well.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.capture(c.Context(), f) },
	}
	c.Flags().StringVar(&f.of, "of", "", "the process, device or endpoint: 4711, softrnic0, unix:/path")
	c.Flags().StringVarP(&f.file, "write", "w", "", "the file, which the process creates or overwrites")
	c.Flags().DurationVar(&f.time, "for", 0, "end after this time, for example 10s")
	return c
}

func (a *app) capture(ctx context.Context, f captureFlags) error {
	switch {
	case f.of == "":
		return usage("capture needs --of, the process to look at; `softrnic stat` lists them")
	case f.file == "":
		return usage("capture needs -w, the file to write, for example -w out.pcapng")
	case f.time < 0:
		return usage("--for %v: want a time such as 10s", f.time)
	}
	path, err := filepath.Abs(f.file)
	if err != nil {
		return err
	}
	peers, err := debug.Find(ctx, f.of)
	if err != nil {
		return err
	}
	if len(peers) > 1 {
		return usage("--of %s means %d devices; name one: %s", f.of, len(peers), endpoints(peers))
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	p := peers[0]
	err = p.Client.Capture(ctx, path, func() {
		fmt.Fprintf(a.stderr, "capturing %s of process %d to %s", p.Report.Device.Name, p.PID, path)
		if f.time == 0 {
			fmt.Fprint(a.stderr, "; interrupt to end")
		} else {
			time.AfterFunc(f.time, end)
		}
		fmt.Fprintln(a.stderr)
	})
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(struct {
			File  string `json:"file"`
			Bytes int64  `json:"bytes"`
		}{path, info.Size()})
	}
	fmt.Fprintf(a.stdout, "%s: %d bytes\n", path, info.Size())
	return nil
}

// endpoints lists where devices are to be found.
func endpoints(peers []debug.Peer) string {
	text := ""
	for i, p := range peers {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s (%s)", p.Client.Addr(), p.Report.Device.Name)
	}
	return text
}
