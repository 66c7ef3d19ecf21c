package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/debugclient"
)

type captureFlags struct {
	of, file string
	time     time.Duration
}

func (a *app) captureCommand() *cobra.Command {
	var f captureFlags
	c := &cobra.Command{
		Use:   "capture TARGET -w FILE",
		Short: "Write the packets of a running process to a file for Wireshark",
		Long: "Makes a process that runs with SOFTRNIC_DEBUG=auto write the packets that its device\n" +
			"sends and receives to a pcapng file, until interrupted or for the time of --for. No\n" +
			"privilege is needed. A file with the extension .gz or .zst is compressed; Wireshark\n" +
			"reads it as well. Several devices write one file each, with their names before the\n" +
			"extension: x.softrnic0.pcapng and x.softrnic1.pcapng. --of 4711/softrnic0 selects one.\n" +
			"-w - writes one device's packets to stdout: softrnic capture --of 4711 -w - | wireshark -k -i -",
		Args: targetArg(&f.of),
		RunE: func(c *cobra.Command, _ []string) error { return a.runCapture(c.Context(), f) },
	}
	c.Flags().StringVar(&f.of, "of", "", "the process, program, device or endpoint: 4711, ib_write_bw, softrnic0, 4711/softrnic0, unix:/path")
	c.Flags().StringVarP(&f.file, "write", "w", "", "the `file`, which the process creates or overwrites; - is stdout")
	c.Flags().DurationVar(&f.time, "for", 0, "stop after this time, for example 10s")
	return c
}

func (a *app) runCapture(ctx context.Context, f captureFlags) error {
	switch {
	case f.of == "":
		return usageErrorf("capture needs --of, the process; `softrnic stat` lists them")
	case f.file == "":
		return usageErrorf("capture needs -w, the file to write, for example -w out.pcapng")
	case f.time < 0:
		return usageErrorf("--for %v: want a time such as 10s", f.time)
	}
	peers, err := debugclient.Find(ctx, f.of)
	if err != nil {
		return err
	}
	if f.file == "-" {
		return a.captureToStdout(ctx, peers, f.time)
	}
	path, err := filepath.Abs(f.file)
	if err != nil {
		return err
	}
	files := captureFileNames(path, peers)
	if err := a.captureAll(ctx, peers, files, f.time, nil); err != nil {
		return err
	}
	return a.reportCaptureSizes(files)
}

// captureToStdout makes a device write to a pipe and copies that to stdout.
func (a *app) captureToStdout(ctx context.Context, peers []debugclient.Peer, limit time.Duration) (err error) {
	if len(peers) > 1 {
		return usageErrorf("capture: -w -: %d devices cannot share stdout; name one, for example --of %d/%s", len(peers), peers[0].PID, peers[0].Report.Device.Name)
	}
	pipe, err := newCapturePipe()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pipe.close()) }()
	ctx, end := context.WithCancel(ctx)
	defer end()
	var copying sync.WaitGroup
	var copyErr error
	err = a.captureAll(ctx, peers, []string{pipe.path}, limit, func() {
		copying.Go(func() {
			if copyErr = pipe.copyTo(a.stdout); copyErr != nil {
				end() // stdout is closed
			}
		})
	})
	copying.Wait()
	return cmp.Or(copyErr, err)
}

// captureFileNames returns the files of the peers: path itself for one; for several, path with the
// device's name before its extension.
func captureFileNames(path string, peers []debugclient.Peer) []string {
	if len(peers) == 1 {
		return []string{path}
	}
	times := map[string]int{}
	for _, p := range peers {
		times[p.Report.Device.Name]++
	}
	dir, name := filepath.Split(path)
	stem := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	stem = strings.TrimSuffix(stem, filepath.Ext(stem))
	ending := strings.TrimPrefix(name, stem)
	files := make([]string, len(peers))
	for i, p := range peers {
		device := p.Report.Device.Name
		if times[device] > 1 { // in several processes
			device = fmt.Sprintf("%d-%s", p.PID, device)
		}
		files[i] = filepath.Join(dir, stem+"."+strings.ReplaceAll(device, "/", "-")+ending)
	}
	return files
}

// captureAll makes every peer write its file until ctx ends, or for limit if that is not 0. The
// failure of one ends the others. It calls writing, if not nil, after all have started.
func (a *app) captureAll(ctx context.Context, peers []debugclient.Peer, files []string, limit time.Duration, writing func()) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	errs := make([]error, len(peers))
	var running, starting sync.WaitGroup
	starting.Add(len(peers))
	for i, p := range peers {
		running.Go(func() {
			started := sync.OnceFunc(starting.Done)
			defer started()
			if errs[i] = p.Err; p.Err == nil {
				errs[i] = p.Client.Capture(ctx, files[i], started)
			}
			if errors.Is(errs[i], debugclient.ErrEnded) {
				fmt.Fprintf(a.stderr, "%s of process %d: the device was closed, or the process ended\n", p.Report.Device.Name, p.PID)
				errs[i] = nil
			}
			if errs[i] != nil {
				end()
			}
		})
	}
	starting.Wait()
	if ctx.Err() == nil {
		if writing != nil {
			writing()
		}
		for i, p := range peers {
			fmt.Fprintf(a.stderr, "capturing %s of process %d to %s\n", p.Report.Device.Name, p.PID, files[i])
		}
		if limit == 0 {
			fmt.Fprintln(a.stderr, "interrupt to end")
		} else {
			defer time.AfterFunc(limit, end).Stop()
		}
	}
	running.Wait()
	// Drop the errors of captures that another's failure has canceled, unless there is
	// no other error.
	failed := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return errors.Is(err, context.Canceled) })
	return cmp.Or(errors.Join(failed...), errors.Join(errs...))
}

// reportCaptureSizes writes the sizes of the files.
func (a *app) reportCaptureSizes(files []string) error {
	type file struct {
		File  string `json:"file"`
		Bytes int64  `json:"bytes"`
	}
	list := make([]file, len(files))
	for i, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		list[i] = file{path, info.Size()}
	}
	switch {
	case a.json && len(list) == 1:
		return a.writeJSON(list[0])
	case a.json:
		return a.writeJSON(list)
	}
	for _, f := range list {
		fmt.Fprintf(a.stdout, "%s: %d bytes\n", f.File, f.Bytes)
	}
	return nil
}
