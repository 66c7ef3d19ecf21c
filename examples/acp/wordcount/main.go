// Wordcount counts the words of files. The files are distributed over the ranks, and all ranks count in one
// map that is distributed over their memory. The program prints the most frequent words.
//
//	go run ./cmd/softrnic mpirun -n 4 ./examples/acp/wordcount README.md docs/*.md
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/data"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func main() {
	top := flag.Int("top", 10, "number of words to print")
	flag.Parse()
	p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{})
	exitOnError(err)
	ctx := context.Background()
	exitOnError(countWords(ctx, p, flag.Args(), *top, os.Stdout))
	exitOnError(p.Finalize(ctx))
}

// countWords counts the words of this rank's files. Rank 0 prints the result.
func countWords(ctx context.Context, p *acp.Process, files []string, top int, out io.Writer) error {
	s, err := data.Open(ctx, p, data.Options{Heap: 8 << 20})
	if err != nil {
		return err
	}
	m, err := shareMap(ctx, s)
	if err != nil {
		return err
	}
	for i := p.Rank(); i < len(files); i += p.Size() {
		words, err := countFile(files[i])
		if err != nil {
			return err
		}
		for w, n := range words {
			if err := m.Update(ctx, w, func(sum int, _ bool) int { return sum + n }); err != nil {
				return err
			}
		}
	}
	if err := p.Sync(ctx); err != nil { // until all ranks have counted
		return err
	}
	if p.Rank() == 0 {
		err = printTop(ctx, m, top, out)
	}
	return errors.Join(err, s.Close(ctx))
}

// shareMap creates the map at rank 0, and passes its address to the other ranks in their starter memory.
func shareMap(ctx context.Context, s *data.Space) (m *data.Map[string, int], err error) {
	p := s.Process()
	if p.Rank() == 0 {
		if m, err = data.NewMap[string, int](ctx, s, 0, data.MapOptions{Buckets: 1024}); err != nil {
			return nil, err
		}
		for rank := range p.Size() {
			acp.FetchAdd[uint64](p, nil, p.StarterGA(rank), uint64(m.GA()), acp.None)
		}
		if err = p.Complete(ctx, acp.All); err != nil {
			return nil, err
		}
	}
	if err = p.Sync(ctx); err != nil {
		return nil, err
	}
	return data.OpenMap[string, int](ctx, s, acp.GA(binary.NativeEndian.Uint64(p.Starter())))
}

// countFile counts the words of a file.
func countFile(name string) (map[string]int, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	words := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		for w := range strings.FieldsFuncSeq(lines.Text(), func(r rune) bool { return !unicode.IsLetter(r) }) {
			words[strings.ToLower(w)]++
		}
	}
	return words, lines.Err()
}

func printTop(ctx context.Context, m *data.Map[string, int], top int, out io.Writer) error {
	var all []data.Pair[string, int]
	for pair, err := range m.All(ctx) {
		if err != nil {
			return err
		}
		all = append(all, pair)
	}
	slices.SortFunc(all, func(a, b data.Pair[string, int]) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Key, b.Key))
	})
	for _, pair := range all[:min(top, len(all))] {
		if _, err := fmt.Fprintf(out, "%6d %s\n", pair.Value, pair.Key); err != nil {
			return err
		}
	}
	return nil
}

func exitOnError(err error) {
	if err != nil {
		log.Fatal(err) // mpirun terminates the other ranks
	}
}
