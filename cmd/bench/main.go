package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/softrnic/softrnic/internal/bench"
	_ "github.com/softrnic/softrnic/internal/bench/experiments"
	"github.com/softrnic/softrnic/internal/bench/proc"
)

func main() {
	proc.ServeIfWorker() // the experiments start this program again, as their workers
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := &app{registry: &bench.Default, stdout: os.Stdout, stderr: os.Stderr, tourTime: tourTime}
	status := a.main(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}
