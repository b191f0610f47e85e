// Package testnet makes hosts for tests of one machine: network namespaces with names of their own, whose links go to a bridge.
// What goes over a link is counted, and links can be slowed down and cut. It takes root, and the programs ip and tc of iproute2.
package testnet
