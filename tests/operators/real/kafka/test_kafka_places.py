"""Where a broker stands is known by the labels of its pod, which the API server copies from its node."""


def test_the_api_server_copies_the_labels_of_a_place_from_nodes_to_pods(real):
    key = "topology.kubernetes.io/region"
    real.kubectl("label", "node", "processes", f"{key}=here", "--overwrite")
    real.run("sleep", "1000", name="placed")
    real.ready("placed")
    assert real.pod("placed")["metadata"]["labels"][key] == "here"
