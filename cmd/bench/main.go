package main

import (
	"context"
	"os"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	_ "github.com/softrnic/softrnic/cmd/bench/internal/experiments"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/internal/cmdline"
)

func main() {
	proc.ServeIfWorker() // experiments start this program as their workers
	ctx, stop := cmdline.NotifyContext(context.Background())
	a := &app{registry: &bench.Default, stdout: os.Stdout, stderr: os.Stderr, tourTime: tourTime, saveDir: "bench-out"}
	status := a.runCommandLine(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}
