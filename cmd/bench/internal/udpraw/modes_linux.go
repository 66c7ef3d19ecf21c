package udpraw

var modes = []Mode{Spin, Block, Netpoll}
