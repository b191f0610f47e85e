// Package step makes many time steps in one launch, with a field that stays on the multiprocessors. A
// TileGroup cuts the boxes of some devices into tiles, one for each thread block, and TileSteps
// launches the steps of one device. Tiles send each other the values and the numbers of steps of their
// faces, over links too.
package step
