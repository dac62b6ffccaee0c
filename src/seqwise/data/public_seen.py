"""Public sets of pictures. They are found where SEQWISE_DATA or the cache has them: for none is an address known that
has the same content in the same form."""

from __future__ import annotations

from .public_rows import PublicData, PublicFile

KNOWN = {
    "mnist/t10k-images-idx3-ubyte": ("0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", 7_840_016),
    "mnist/t10k-labels-idx1-ubyte": ("ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", 10_008),
    "mnist/train-images-idx3-ubyte": ("ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", 47_040_016),
    "mnist/train-labels-idx1-ubyte": ("65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", 60_008),
    "fashion_mnist/t10k-images-idx3-ubyte": (
        "cff70766751afe490687d61e011dded6e44c3a4844b359f23bc2fff3d45510fe",
        7_840_016,
    ),
    "fashion_mnist/t10k-labels-idx1-ubyte": (
        "ca7191f96843db62ff440cb484bb8755d6d8c9b6d550103a7aa099b2a2b85f7a",
        10_008,
    ),
    "fashion_mnist/train-images-idx3-ubyte": (
        "4947933ff9f43d63ce70f76e23aa59a5bc748074a984a19e02b4dcaaca102b1d",
        15_680_016,
    ),
    "fashion_mnist/train-labels-idx1-ubyte": (
        "87f44e4d4c21b06ed921cd65656273c99762d1cb505d7c4b96a16418a810580f",
        20_008,
    ),
    "cifar10/test.tar": ("4d3f5584bfe0a58112f8208f07dc99f96810f1c7cbb1a3a01fbc8bcca879d27e", 15_462_400),
    "cifar10/train.tar": ("7a6ca90c4be3f975a4288cb27397b1b68dbb206b78705202043e0a7e610a0cf4", 77_240_320),
    "flickr8k/captions.token.txt": ("f6802189ec97f50ee23b4a00f1bd37b2cbd3a78b2e7595676c0f39c204f61a80", 3_310_055),
    "flickr8k/dev.txt": ("09aa9e58d277fd21d3e4c0f22d9698f53fd1f7ee87b86e9f7a532dd61fd18b87", 25_801),
    "flickr8k/images_dev.zip": ("e6b4a6f63cb2a86ec54937eee5fd91757d2f1c27ebff35832d4739b979e9471b", 3_934_056),
    "flickr8k/images_test.zip": ("6797c5097195f2fe2f7851090bce102a1b756a2e032612e6777963233b51bb8f", 3_124_348),
    "flickr8k/images_train.zip": ("53fad3026a46691e677773d483ce57c55b9e3247584831e2ce35fd4fd3d2b62a", 23_535_725),
    "flickr8k/multi30k_link.tsv": ("8fc350827adfcd6c723d87dfa0e29452cc028e8ed2c3b54d7e819904fa40aa88", 312_947),
    "flickr8k/test.txt": ("cce84c80af71d4b093df3e260a33ecf6059a722eb7bd19d5e25e71ad99a16927", 20_719),
    "flickr8k/train.txt": ("0e91c191ca46f050a5d6b5d5a37c053516599d8659cf3bc2ff1b4161bee1bc46", 154_678),
    "easy_vqa/test.images.zip": ("6a58f1d29a248171a9ae75d391bf213c2573bf9b4f1b2bb6bee9e82987ecd8ea", 364_116),
    "easy_vqa/test.questions.json": ("6b81f32e9731960767ac030e58406928ecd2f24f626d3880a9190aea5974a3fa", 325_803),
    "easy_vqa/train.images.zip": ("2b0c9ee27b7f8000e6f9439ef99c47b5cc266742a3fba1896ebd530c95eea89f", 2_100_678),
    "easy_vqa/train.questions.json": ("bb67697636aed0e65631d4266824aebeae5c833b0f37ed781e20752e85617ec5", 1_888_771),
    "vqa_rad/images.zip": ("90ec4c3c5f077625143cd63875905653da435178f3a525acb72111c85c13f3b4", 2_347_470),
    "vqa_rad/vqa_rad_public.json": ("7bfe72e1c866672a862dc21c362df6795e315d7ee4ea8af7dda125471a09fd44", 1_212_489),
    "msvd/training_label.json": ("10bcc607db89cc7e8a4b93b1f0db7e8f59066955515f48da6f833a62c9b94e6d", 1_451_266),
    "msvd/vgg16_feat/3qqEKTPxLNs_1_15.avi.npy": (
        "53555dbc1b374af672cfef784e1f9c7763314546b2141f13fdfc231440109304",
        2_621_520,
    ),
    "msvd/vgg16_feat/UXs3eq68ZjE_250_255.avi.npy": (
        "c77a73add7bdbf7d92c2a5c1f77f096dc4e8c79ac85e55e44d6485bfb2bdc5e6",
        2_621_520,
    ),
    "msvd/vgg16_feat/WTf5EgVY5uU_124_128.avi.npy": (
        "8778cf7738b646f5d0467db110410ecc50c36250b262a019fce9d6b4102edfd5",
        2_621_520,
    ),
    "msvd/vgg16_feat/j2Dhf-xFUxU_13_20.avi.npy": (
        "2edbc392b5aabe343d4a65a1b6e9ad72dc31fc3412a8aa24a5ae5748fb4abf59",
        2_621_520,
    ),
    "msvd/vgg16_feat/klteYv1Uv9A_27_33.avi.npy": (
        "9c4346ec96dbb30ed72f903e5f218fbe4971ba6e8e5cd8e4343d6db4a20880d7",
        2_621_520,
    ),
}
"""By path: sha256 and length of the unpacked content."""


def _files(**paths: str) -> dict[str, PublicFile]:
    return {name.replace("_", " "): PublicFile(path, "", *KNOWN[path]) for name, path in paths.items()}


def _idx(folder: str) -> dict[str, PublicFile]:
    names = {"train": "train", "test": "t10k"}
    return _files(
        **{f"{part}_pictures": f"{folder}/{own}-images-idx3-ubyte" for part, own in names.items()},
        **{f"{part}_labels": f"{folder}/{own}-labels-idx1-ubyte" for part, own in names.items()},
    )


def _set(title: str, licence: str, files: dict[str, PublicFile]) -> PublicData:
    folder = next(iter(files.values())).path.partition("/")[0]
    how = f"put its files into a folder {folder} below SEQWISE_DATA"
    return PublicData(title, licence, files, holds="pictures", how_to_get=how)


CLIPS = [path for path in KNOWN if path.startswith("msvd/vgg16_feat/")]
PICTURES = {
    "mnist": _set("Pictures: 70,000 digits of 28 x 28 pixels, 10 labels", "CC BY-SA 3.0", _idx("mnist")),
    "fashion_mnist": _set(
        "Pictures: 30,000 clothes of 28 x 28 pixels, 10 labels; a third of the published training part",
        "MIT",
        _idx("fashion_mnist"),
    ),
    "cifar10": _set(
        "Pictures: 60,000 of 32 x 32 pixels in colour, 10 labels; encoded as JPEG, not the original pixels",
        "none stated",
        _files(train="cifar10/train.tar", test="cifar10/test.tar"),
    ),
    "flickr8k": _set(
        "Captions: 7,804 photographs, five captions each; of 804 of the 1,000 test pictures",
        "research use",
        _files(
            captions="flickr8k/captions.token.txt",
            multi30k="flickr8k/multi30k_link.tsv",
            **{f"{part}_pictures": f"flickr8k/images_{part}.zip" for part in ("train", "dev", "test")},
            **{f"{part}_names": f"flickr8k/{part}.txt" for part in ("train", "dev", "test")},
        ),
    ),
    "easy_vqa": _set(
        "Questions: 45,350 on 4,700 drawn shapes of 64 x 64 pixels, 13 answers",
        "MIT",
        _files(
            **{f"{part}_pictures": f"easy_vqa/{part}.images.zip" for part in ("train", "test")},
            **{f"{part}_questions": f"easy_vqa/{part}.questions.json" for part in ("train", "test")},
        ),
    ),
    "vqa_rad": _set(
        "Questions: 2,248 on 315 radiology pictures; most test pictures occur in training (vqa_rad:closed: yes or no)",
        "CC0",
        _files(pictures="vqa_rad/images.zip", questions="vqa_rad/vqa_rad_public.json"),
    ),
    "msvd": _set(
        "Captions: 1,450 clips; features of 5 test clips only, to be described",
        "none stated",
        _files(captions="msvd/training_label.json", **{f"features_{n}": path for n, path in enumerate(CLIPS)}),
    ),
}
