package repotest

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// netTypes are the types that follow package net: a second Close returns net.ErrClosed.
var netTypes = map[string]bool{"sdp.Conn": true, "sdp.Listener": true, "sdp.PacketConn": true}

// closables are the types in the order of users first.
var closables = []string{
	"sdp.Conn", "sdp.Listener", "sdp.PacketConn", "sdp.Stack",
	"rdm.Peer", "rdm.Region", "rdm.Endpoint",
	"cm.Multicast", "cm.Conn", "cm.Listener", "cm.UDListener", "cm.Manager",
	"verbs.PeerAH", "verbs.AH", "verbs.QP", "verbs.SRQ", "verbs.CQ", "verbs.CompChannel", "verbs.MW", "verbs.MR", "verbs.PD", "verbs.Device",
}

// TestCloseTwice closes an object of each type three times.
func TestCloseTwice(t *testing.T) {
	objects := openObjects(t)
	for _, name := range closables {
		c := objects[name]
		require.NotNil(t, c, name)
		require.NoError(t, c.Close(), name)
		for range 2 {
			if err := c.Close(); netTypes[name] {
				require.ErrorIs(t, err, net.ErrClosed, name)
			} else {
				require.NoError(t, err, name)
			}
		}
	}
	require.Len(t, objects, len(closables))
	for _, dir := range []string{"verbs", "rnic", "cm", "rdm", "sdp"} {
		for _, name := range typesWithClose(t, dir) {
			if name != "rnic.Device" { // a verbs.Device
				require.Contains(t, objects, name)
			}
		}
	}
}

// typesWithClose returns the exported types of a package that declare a method Close or embed
// io.Closer.
func typesWithClose(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	add := func(name string) {
		if ast.IsExported(name) {
			names = append(names, dir+"."+name)
		}
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && n.Name.Name == "Close" {
					star, _ := n.Recv.List[0].Type.(*ast.StarExpr)
					require.NotNil(t, star, "%s: receiver of Close", name)
					add(star.X.(*ast.Ident).Name)
				}
			case *ast.TypeSpec:
				if typ, ok := n.Type.(*ast.InterfaceType); ok && declaresClose(typ) {
					add(n.Name.Name)
				}
			}
			return true
		})
	}
	require.NotEmpty(t, names, dir)
	return names
}

func declaresClose(typ *ast.InterfaceType) bool {
	for _, m := range typ.Methods.List {
		if len(m.Names) > 0 && m.Names[0].Name == "Close" {
			return true
		}
		if sel, ok := m.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Closer" {
			return true
		}
	}
	return false
}

// openObjects opens an object of each type.
func openObjects(t *testing.T) map[string]io.Closer {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	dev, far := openDevice(t), openDevice(t)
	m := must(cm.New(dev, cm.Options{}))(t)
	farManager := must(cm.New(far, cm.Options{}))(t)
	objects := map[string]io.Closer{"verbs.Device": dev, "cm.Manager": m}

	pd := must(dev.AllocPD())(t)
	ch := must(dev.CreateCompChannel())(t)
	cq := must(ch.CreateCQ(16))(t)
	srq := must(pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1}))(t)
	newQP := func(pd verbs.PD, cq verbs.CQ, attr verbs.QPInitAttr) verbs.QP {
		attr.SendCQ, attr.RecvCQ, attr.Cap = cq, cq, verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}
		return must(pd.CreateQP(attr))(t)
	}
	attr := verbs.AHAttr{DGID: verbs.GIDFromAddr(far.Addr().Addr()), UDPPort: far.Addr().Port()}
	ud := newQP(pd, cq, verbs.QPInitAttr{Type: verbs.UD, SRQ: srq, MaxDatagramRDMA: 4})
	objects["verbs.PD"], objects["verbs.CompChannel"], objects["verbs.CQ"], objects["verbs.SRQ"], objects["verbs.QP"] = pd, ch, cq, srq, ud
	objects["verbs.AH"] = must(pd.CreateAH(attr))(t)
	objects["verbs.PeerAH"] = must(ud.(verbs.DatagramRDMA).CreatePeer(verbs.PeerAttr{AH: attr, QPN: 77}))(t)
	objects["verbs.MR"] = must(pd.RegMR(make([]byte, 64), verbs.AccessLocalWrite))(t)
	objects["verbs.MW"] = must(pd.AllocMW())(t)

	objects["cm.UDListener"] = must(m.ListenUD(0, cm.ListenOptions{}))(t)
	objects["cm.Multicast"] = must(m.Join(netip.MustParseAddr("239.1.2.3"), cm.UDQueuePair{QP: ud}))(t)
	l := must(m.Listen(0, cm.ListenOptions{}))(t)
	farQP := newQP(must(far.AllocPD())(t), must(far.CreateCQ(16))(t), verbs.QPInitAttr{Type: verbs.RC})
	go func() {
		_, _ = farManager.Dial(ctx, l.Addr(), farQP, cm.DialOptions{UDPPort: dev.Addr().Port()}) // if it fails, Accept times out
	}()
	r := must(l.Accept(ctx))(t)
	rcPD := must(dev.AllocPD())(t)
	conn := must(r.Accept(ctx, newQP(rcPD, must(dev.CreateCQ(16))(t), verbs.QPInitAttr{Type: verbs.RC}), cm.AcceptOptions{}))(t)
	objects["cm.Listener"], objects["cm.Conn"] = l, conn

	e := must(rdm.Open(openDevice(t), rdm.Options{}))(t)
	other := must(rdm.Open(openDevice(t), rdm.Options{}))(t)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	objects["rdm.Endpoint"] = e
	objects["rdm.Region"] = must(e.Register(make([]byte, 64), verbs.AccessLocalWrite))(t)
	objects["rdm.Peer"] = must(e.Dial(ctx, other.Addr()))(t)

	s := must(sdp.New(openDevice(t), sdp.Options{}))(t)
	server := must(sdp.New(openDevice(t), sdp.Options{}))(t)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	sl := must(server.Listen("sdp", ":7471"))(t)
	objects["sdp.Stack"], objects["sdp.Listener"] = s, sl
	objects["sdp.PacketConn"] = must(s.ListenPacket("sdp", ":0"))(t)
	objects["sdp.Conn"] = must(s.DialContext(ctx, "sdp", sl.Addr().String()))(t)
	return objects
}

func openDevice(t *testing.T) *rnic.Device {
	dev := must(rnic.Open(rnic.Options{}))(t)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// must returns a function that requires err to be nil and returns v.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}
