package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

// A runner runs the commands of a script.
type runner struct {
	sim   *sim.Sim
	trace *sim.Trace

	printed   int           // lines of the trace
	printedAt time.Duration // when

	devices map[string]*device
	regions map[string]*region
	windows map[string]*window
	srqs    map[string]*srq
	qps     map[string]*qp
}

func newRunner(s *sim.Sim) *runner {
	return &runner{
		sim: s, trace: s.Record(),
		devices: make(map[string]*device), regions: make(map[string]*region), windows: make(map[string]*window),
		srqs: make(map[string]*srq), qps: make(map[string]*qp),
	}
}

func (r *runner) close() {
	for _, d := range r.sim.Devices() {
		d.Close()
	}
}

// commands are the commands by name. They return their output.
var commands map[string]func(*runner, *arguments) (string, error)

func init() {
	quiet := func(f func(*runner, *arguments) error) func(*runner, *arguments) (string, error) {
		return func(r *runner, w *arguments) (string, error) { return "", f(r, w) }
	}
	post := func(op verbs.WROpcode) func(*runner, *arguments) (string, error) {
		return quiet(func(r *runner, w *arguments) error { return r.postSend(op, w) })
	}
	commands = map[string]func(*runner, *arguments) (string, error){
		"device": quiet((*runner).createDevice), "region": quiet((*runner).createRegion), "window": quiet((*runner).createWindow),
		"srq": quiet((*runner).createSRQ), "connect": quiet((*runner).connectQPs), "ud": quiet((*runner).createUD),
		"recv": quiet((*runner).postRecv), "send": post(verbs.WRSend), "send_imm": post(verbs.WRSendWithImm),
		"send_inv": post(verbs.WRSendWithInv), "write": post(verbs.WRRDMAWrite), "write_imm": post(verbs.WRRDMAWriteWithImm),
		"read": post(verbs.WRRDMARead), "fadd": post(verbs.WRAtomicFetchAdd), "cas": post(verbs.WRAtomicCmpSwap),
		"atomic_write": post(verbs.WRAtomicWrite), "flush": post(verbs.WRFlush),
		"bind": post(verbs.WRBindMW), "local_inv": post(verbs.WRLocalInv),
		"set": quiet((*runner).setWord), "modify": quiet((*runner).modifyQP), "resize": quiet((*runner).resizeSRQ),
		"arm": quiet((*runner).armCQ), "dereg": quiet((*runner).deregRegion), "destroy": quiet((*runner).destroyQP),
		"inject": quiet((*runner).injectPacket), "expect": quiet((*runner).expect),
		"trace":    func(r *runner, w *arguments) (string, error) { return r.printTrace(), w.finish() },
		"counters": (*runner).printCounters,
	}
}

// An adapterError is an error of the adapter, which is output of the script;
// all other errors end it.
type adapterError struct{ error }

func (r *runner) runCommand(line string) (string, error) {
	fields := strings.Fields(line)
	name, args := fields[0], fields[1:]
	switch name {
	case "fault": // its rules are parsed by impair
		return "", r.setFaults(args)
	case "run":
		return "", r.advanceTime(parseArguments(args))
	}
	command := commands[name]
	if command == nil {
		return "", fmt.Errorf("unknown command %s", name)
	}
	out, err := command(r, parseArguments(args))
	var refused adapterError
	if errors.As(err, &refused) {
		return out + "refused: " + r.nameQPs(refused.Error()) + "\n", nil
	}
	return out, err
}

// nameQPs replaces queue pair numbers by names.
func (r *runner) nameQPs(s string) string {
	for name, q := range r.qps {
		s = strings.ReplaceAll(s, fmt.Sprintf("QP 0x%x", q.Num()), "QP "+name)
	}
	return s
}

// advanceTime lets time pass.
func (r *runner) advanceTime(w *arguments) error {
	if len(w.names) == 0 {
		if !r.sim.Run(nil) {
			return errors.New("simulation does not end; give run a time")
		}
		return w.finish()
	}
	d := w.parseDuration(w.nextName())
	if err := w.finish(); err != nil {
		return err
	}
	r.sim.RunFor(d)
	return nil
}

// setFaults changes the faults of the link of a device.
func (r *runner) setFaults(args []string) error {
	if len(args) == 0 {
		return errors.New("a name is missing")
	}
	d, ok := r.devices[args[0]]
	if !ok {
		return fmt.Errorf("unknown device %s", args[0])
	}
	rules := args[1:]
	for i := range rules {
		if q := r.qps[rules[i]]; q != nil && i > 0 && rules[i-1] == "qp" {
			rules[i] = fmt.Sprint(q.Num())
		}
	}
	return d.SetImpair(strings.Join(rules, " "))
}

func (r *runner) printTrace() string {
	text := r.trace.Text(r.printed, r.printedAt)
	r.printed, r.printedAt = r.trace.Len(), r.sim.Now()
	return text
}

// printCounters prints the counters of a queue pair that are not zero.
func (r *runner) printCounters(w *arguments) (string, error) {
	q := r.nextQP(w)
	if err := w.finish(); err != nil {
		return "", err
	}
	var b strings.Builder
	info, _ := q.dev.InspectQP(q.QP.Num())
	v := reflect.ValueOf(info.Counters)
	for i := range v.NumField() {
		if n := v.Field(i).Uint(); n != 0 {
			fmt.Fprintf(&b, "%s %s %d\n", q.name, counters.Snake(v.Type().Field(i).Name), n)
		}
	}
	return b.String(), nil
}

// findNext consumes the name of an object and returns the object.
func findNext[T any](w *arguments, what string, m map[string]*T) *T {
	return lookup(w, what, m, w.nextName())
}

func lookup[T any](w *arguments, what string, m map[string]*T, name string) *T {
	o := m[name]
	if o == nil {
		w.setError("unknown %s %s", what, name)
		o = new(T) // the command fails in finish
	}
	return o
}

func (r *runner) nextQP(w *arguments) *qp { return findNext(w, "queue pair", r.qps) }
