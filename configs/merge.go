package configs

import (
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// merge lays the layers over the defaults, each over those before it. Settings travel through viper whole, so that a
// value still knows where it came from.
func merge(layers ...layer) *viper.Viper {
	v := viper.New()
	for _, k := range keys {
		if k.Default != "" {
			v.SetDefault(k.Name, defaultSetting(k))
		}
	}
	for _, l := range layers {
		for key, s := range l {
			v.Set(key, s)
		}
	}
	return v
}

// defaultSetting is what holds for a key that nobody set.
func defaultSetting(k Key) setting {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(k.Default), &doc); err != nil {
		panic(err) // the schema is wrong, which a test finds
	}
	return setting{key: k.Name, node: doc.Content[0]}
}
