// Ringshift is the program of figure 2 of the ACP paper: an array that is distributed over all ranks is
// shifted repeatedly by one element. Each rank sends its last element to its right neighbor by a channel. A
// rank has two channels, whatever the number of ranks.
//
//	go run ./cmd/softrnic mpirun -n 4 ./examples/acp/ringshift -steps 10000
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// partSize is the number of elements of a rank.
const partSize = 100

func main() {
	steps := flag.Int("steps", 10000, "number of shifts")
	imm := flag.Bool("imm", false, "signal by immediate data")
	flag.Parse()
	p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{})
	exitOnError(err)
	exitOnError(shiftArray(p, *steps, acp.ChannelOptions{SlotSize: 64, Imm: *imm}, os.Stdout))
	exitOnError(p.Finalize(context.Background()))
}

// shiftArray shifts the array, and verifies the result.
func shiftArray(p *acp.Process, steps int, o acp.ChannelOptions, out io.Writer) error {
	ctx := context.Background()
	left, right := (p.Rank()+p.Size()-1)%p.Size(), (p.Rank()+1)%p.Size()
	in, err := acp.NewChan[int64](p, left, p.Rank(), o)
	if err != nil {
		return err
	}
	to, err := acp.NewChan[int64](p, p.Rank(), right, o)
	if err != nil {
		return err
	}
	buf := make([]int64, partSize)
	for i := range buf {
		buf[i] = int64(p.Rank()*partSize + i)
	}
	for range steps {
		if err := to.Send(ctx, buf[partSize-1]); err != nil { // returns when the value is in a slot
			return err
		}
		last, err := in.Recv(ctx)
		if err != nil {
			return err
		}
		buf = slices.Insert(buf[:partSize-1], 0, last)
	}
	if err := to.Close(ctx); err != nil {
		return err
	}
	if err := in.Close(ctx); err != nil {
		return err
	}
	all := p.Size() * partSize
	for i, have := range buf {
		if want := ((p.Rank()*partSize+i-steps)%all + all) % all; have != int64(want) {
			return fmt.Errorf("rank %d: element %d is %d, want %d", p.Rank(), i, have, want)
		}
	}
	if p.Rank() == 0 {
		_, err = fmt.Fprintf(out, "%d elements of %d ranks are shifted by %d.\n", all, p.Size(), steps)
	}
	return err
}

func exitOnError(err error) {
	if err != nil {
		log.Fatal(err) // mpirun terminates the other ranks
	}
}
