package proc

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Command is the first argument that makes a program a worker.
const Command = "worker"

// A Func is the body of a worker. Its context ends when the parent closes the
// group or is gone.
type Func func(ctx context.Context, w *Worker) error

var workerFuncs = map[string]Func{}

// Register makes fn the worker that name and role stand for. It is called from
// init functions and panics if the pair is taken.
func Register(name, role string, fn Func) {
	key := name + "/" + role
	if _, taken := workerFuncs[key]; taken {
		panic("proc: worker " + key + " is registered twice")
	}
	workerFuncs[key] = fn
}

func lookupFunc(name, role string) (Func, error) {
	if fn, ok := workerFuncs[name+"/"+role]; ok {
		return fn, nil
	}
	var known []string
	for k := range workerFuncs {
		known = append(known, k)
	}
	slices.Sort(known)
	return nil, fmt.Errorf("proc: no worker %s/%s; there are: %s", name, role, strings.Join(known, ", "))
}

// ServeIfWorker runs the worker and exits if the process was started as one,
// and returns at once if not. Call it first thing in main, and in TestMain of
// every test that starts workers.
func ServeIfWorker() {
	if len(os.Args) != 4 || os.Args[1] != Command {
		return
	}
	os.Exit(serveProcess(os.Args[2], os.Args[3]))
}
