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

// A Func is the body of a worker. Its context is cancelled when the parent closes the group or
// ends.
type Func func(ctx context.Context, w *Worker) error

var workerFuncs = map[string]Func{}

// Register registers fn under name and role. It is called from init functions and panics if the
// pair is already registered.
func Register(name, role string, fn Func) {
	key := name + "/" + role
	if _, taken := workerFuncs[key]; taken {
		panic("proc: worker " + key + ": registered twice")
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
	return nil, fmt.Errorf("proc: unknown worker %s/%s; known workers: %s", name, role, strings.Join(known, ", "))
}

// ServeIfWorker runs the worker and exits if the process was started as one. Otherwise it
// returns at once. Call it first in main, and in TestMain of every test that starts workers.
func ServeIfWorker() {
	if len(os.Args) != 4 || os.Args[1] != Command {
		return
	}
	os.Exit(serveProcess(os.Args[2], os.Args[3]))
}
