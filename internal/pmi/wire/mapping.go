package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MappingKey is the key of the mapping of ranks to nodes.
const MappingKey = "PMI_process_mapping"

// maxDepth is the maximum nesting of repetitions.
const maxDepth = 8

// ParseMapping parses the value of MappingKey for a job of size ranks and returns the
// node of each rank. The value is a list of blocks,
//
//	(vector,(0,2,3),2)
//
// where (a,b,c) puts c ranks on each of b nodes starting with node a, a single number a
// puts one rank on node a, and [...]x4 repeats its blocks four times. If ranks are left
// at the end of the list, it repeats from the first block that starts at node 0: the
// default of a manager is (vector,(0,1,1)).
func ParseMapping(text string, size int) ([]int, error) {
	p := &mappingParser{text: text, rest: text, size: size, repeatFrom: -1, nodes: make([]int, 0, min(size, 1<<16))}
	p.expectToken("(")
	p.expectToken("vector")
	for p.err == nil && p.acceptToken(",") {
		p.parseBlock(0)
	}
	if p.acceptToken("]") {
		p.fail("unmatched ]")
	}
	// Slurm sometimes omits the last parenthesis.
	if p.acceptToken(")"); p.rest != "" {
		p.fail("trailing text after the last block")
	}
	if p.err == nil && len(p.nodes) < size && p.repeatFrom < 0 {
		p.fail(fmt.Sprintf("mapping of %d ranks", len(p.nodes)))
	}
	if p.err != nil {
		return nil, p.err
	}
	for i := p.repeatFrom; len(p.nodes) < size; i++ {
		p.nodes = append(p.nodes, p.nodes[i])
	}
	return p.nodes[:size], nil
}

type mappingParser struct {
	text, rest string
	size       int
	nodes      []int
	repeatFrom int // index in nodes from which they repeat, or -1
	err        error
}

func (p *mappingParser) fail(cause string) {
	if p.err == nil {
		p.err = fmt.Errorf("%s=%.80q: malformed mapping of %d ranks: %s", MappingKey, p.text, p.size, cause)
	}
}

func (p *mappingParser) acceptToken(token string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.rest, " "), token)
	if ok && p.err == nil {
		p.rest = strings.TrimLeft(rest, " ")
	}
	return ok && p.err == nil
}

func (p *mappingParser) expectToken(token string) {
	if !p.acceptToken(token) {
		p.fail(fmt.Sprintf("want %s at %.20q", token, p.rest))
	}
}

func (p *mappingParser) parseInt() int {
	end := 0
	for end < len(p.rest) && p.rest[end] >= '0' && p.rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(p.rest[:end], 10, 31)
	if err != nil {
		p.fail(fmt.Sprintf("want a number at %.20q", p.rest))
	}
	p.rest = strings.TrimLeft(p.rest[end:], " ")
	return int(n)
}

// parseBlock parses a block and assigns its ranks.
func (p *mappingParser) parseBlock(depth int) {
	switch {
	case p.acceptToken("("):
		first := p.parseInt()
		p.expectToken(",")
		nodes := p.parseInt()
		p.expectToken(",")
		ranks := p.parseInt()
		p.expectToken(")")
		if nodes > 0 && ranks > 0 {
			p.markRepeat(first)
		}
		for node := 0; node < nodes && ranks > 0 && len(p.nodes) < p.size && p.err == nil; node++ {
			for range min(ranks, p.size-len(p.nodes)) {
				p.nodes = append(p.nodes, first+node)
			}
		}
	case p.acceptToken("["):
		if depth == maxDepth {
			p.fail("[ nested too deeply")
			return
		}
		start := len(p.nodes)
		p.parseBlock(depth + 1)
		for p.acceptToken(",") {
			p.parseBlock(depth + 1)
		}
		p.expectToken("]x")
		times := p.parseInt()
		if p.err == nil && times == 0 {
			p.fail("repetition 0 times")
			return
		}
		once := slices.Clone(p.nodes[start:])
		for i := 1; i < times && len(once) > 0 && len(p.nodes) < p.size; i++ {
			p.nodes = append(p.nodes, once[:min(len(once), p.size-len(p.nodes))]...)
		}
	default:
		node := p.parseInt()
		p.markRepeat(node)
		if p.err == nil && len(p.nodes) < p.size {
			p.nodes = append(p.nodes, node)
		}
	}
}

// markRepeat records the first block that starts at node 0.
func (p *mappingParser) markRepeat(node int) {
	if p.repeatFrom < 0 && node == 0 && len(p.nodes) < p.size {
		p.repeatFrom = len(p.nodes)
	}
}

// FormatMapping returns the value of MappingKey for the nodes of the ranks, in the form
// that clients of all versions parse: blocks in parentheses only, without repetitions
// from node 0.
func FormatMapping(nodes []int) string {
	if len(nodes) > 0 && nodes[0] == 0 {
		period := 1
		for !slices.Equal(nodes[period:], nodes[:len(nodes)-period]) {
			period++
		}
		nodes = nodes[:period]
	}
	type block struct{ first, nodes, ranks int }
	var blocks []block
	for i := 0; i < len(nodes); {
		end := i + 1
		for end < len(nodes) && nodes[end] == nodes[i] {
			end++
		}
		next := block{nodes[i], 1, end - i}
		if n := len(blocks); n > 0 && blocks[n-1].ranks == next.ranks && blocks[n-1].first+blocks[n-1].nodes == next.first {
			blocks[n-1].nodes++
		} else {
			blocks = append(blocks, next)
		}
		i = end
	}
	var b strings.Builder
	b.WriteString("(vector")
	for _, x := range blocks {
		fmt.Fprintf(&b, ",(%d,%d,%d)", x.first, x.nodes, x.ranks)
	}
	b.WriteString(")")
	return b.String()
}
