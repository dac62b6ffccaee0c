"""Public data sets of texts with labels and of words with tags: rows of PUBLIC.

The commit stands in each address, so that what is there does not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from .public_rows import GITHUB, PublicData, PublicFile


@dataclass(frozen=True)
class Source:
    folder: str
    """Below the data folder."""
    base: str
    """Repository, commit and folder; empty where no address is known that has this content."""
    files: dict[str, tuple[str, int]]
    """sha256 and bytes, both of the unpacked content."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Files that have another name there."""
    nested: bool = False
    """Whether train.label is train/label there."""

    def public_files(self) -> Iterator[PublicFile]:
        for name, (sha256, num_bytes) in self.files.items():
            there = name.replace(".", "/", 1) if self.nested else self.renamed.get(name, name)
            address = f"{GITHUB}/{self.base}/{there}" if self.base else ""
            yield PublicFile(f"{self.folder}/{name}", address, sha256, num_bytes)


SOURCES = [
    Source(
        "ag_news",
        "mhjabreel/CharCnn_Keras/555590db4219b1243abb1918effd6a7425a2d75f/data/ag_news_csv",
        {
            "test.csv": ("521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699", 1_857_427),
        },
    ),
    Source(
        "ag_news",
        "",
        {
            "train_5000.csv": ("cc8f98c84288ce5b48c2e13c45664a22795767d70cb144e6d5aa53b89e11fc6e", 1_216_932),
        },
    ),
    Source(
        "atis",
        "MiuLab/SlotGated-SLU/61f0307c729b1fad479ef1de94aa5ac5dee601b0/data/atis",
        {
            "test.label": ("ce4bfe6590d9498e1078f30b4137d3e8b3e94277b444b26360c0bf2e9e282761", 11_634),
            "test.seq.in": ("4b2119fc59c37f9398c6605db435d4f467505009e6ee3e5af04fed09f39dc397", 52_122),
            "test.seq.out": ("a4690d6bceadc06876d1ff99bc401744aa981cb321e598ae12a3859d7be53254", 81_238),
            "train.label": ("d0a771547665eecbdf9f96ea015ef07d1f6ee9f063e861020dafabb3c2a04377", 57_831),
            "train.seq.in": ("3a670980841b21ab39088b2595efc17d487cdc45769c075a3e5f9458bba28c7f", 289_848),
            "train.seq.out": ("14c7131bd66562f797dbd7189bc7358f0cf354c6afb0785a9ab973c35b58f34c", 415_557),
            "valid.label": ("06957cfe6fdffac84f8280bc3a1f8ca85c85631b363817aa4543aac611f8addf", 6_518),
            "valid.seq.in": ("c7435b96e7948393608c34819628e863c5338f11ca68e8f896d2cc041d8e17f8", 32_761),
            "valid.seq.out": ("83ccff3e36f83a993f8e5b5b82adf3256076f234abda4d784051381d7ac76922", 47_763),
        },
        nested=True,
    ),
    Source(
        "cola",
        "nyu-mll/CoLA-baselines/dd095d3646ed05a315280aaa8ed4ec84ba435b3e/acceptability_corpus/cola_public/raw",
        {
            "in_domain_dev.tsv": ("77176f6a03faa5a1c4f23c69971fc1bff565931112fb65af47b2d6e24b7f42f7", 25_957),
            "in_domain_train.tsv": ("f320a10f92d3bce6b29152fde322a362eac39238e50d8de0c8815457fdf4fc12", 428_578),
            "out_of_domain_dev.tsv": ("201b9c57b2a20f1282242eec0ed8995729e3be19c29a46c047b3727338836c05", 27_754),
        },
    ),
    Source(
        "conll2003",
        "ZhixiuYe/HSCRF-pytorch/86bb64890317b74517c5ad44b47c66635df327d8/data",
        {
            "eng.testa": ("aa83a45b88e4952998156583e2ff5a8be7c1f04fb9efa3a29cd87fac2c883807", 827_010),
            "eng.testb": ("443914daf51328868558859b28252a28caee2fd02b65e77987977d6489246c5f", 748_093),
            "eng.train": ("bed631399cb0e859c4b446438ce57dfe0208792ca6106ef11620877355494c3a", 3_281_526),
        },
    ),
    Source(
        "imdb",
        "",
        {
            "test.tsv": ("314d3a8497297892f35c731a356357f3aeb9a5c51fb8411fa29e1d23f95e751c", 29_775_964),
            "train.tsv": ("adb6f96e96b4a53c416586a460a6fb2b1441b0e695072001a07562974e4be8b2", 33_260_752),
        },
    ),
    Source(
        "movie_review_polarity",
        "jbrownlee/Datasets/d20fcb6402ae34e653d4513b00f39257bb37ed7f",
        {
            "review_polarity.tar": ("ccc908e393bc4360cc496032faf8337edefdea2833f10e9ea3547be515a4218b", 9_328_640),
        },
        renamed={"review_polarity.tar": "review_polarity.tar.gz"},
    ),
    Source(
        "mrpc",
        "brmson/dataset-sts/e1d3375f5b3bc24f21aa4e46f96eb379e9fc1081/data/para/msr",
        {
            "msr-para-test.tsv": ("51a1f197d8786712d2f0d97700f5be653b7488a96cde00e158159350d23e3d90", 432_882),
            "msr-para-train.tsv": ("446b9a5fa4e8d526b99f1d635f036f89063749783f5d3464ee8c1879724d406d", 900_305),
            "msr-para-val.tsv": ("7e5d0ee4ec392b062af73c7cffe82f0725e5b08f6bfdf0915f31bbc470b8bacf", 126_482),
        },
    ),
    Source(
        "names_by_nationality",
        "spro/practical-pytorch/c520c52e68e945d88fff563dba1c028b6ec0197b/data/names",
        {
            "Arabic.txt": ("6f424a8dbe51cbbbabab7a57d38b617210125e4e3991f3c657cb79b8f104bafc", 13_190),
            "Chinese.txt": ("09ba8f1f7e38dbc99372d461b26ad4433b811fc6bfa6a3ecca6fe11a9a777465", 1_246),
            "Czech.txt": ("e17ab0ec47616a72c39cb85c783f70c3663ab64488721e5d8378f146d2226be7", 3_916),
            "Dutch.txt": ("924f32b635170eae561f84538632138fc07d4c8bbd70ba3fb980de1ecc4d2af3", 2_351),
            "English.txt": ("9cca037066d3d5989e24bc01801416162de506b5e28e15b7c092a47905d29bf2", 27_125),
            "French.txt": ("81e65b36c60ed5b89a17422f6edcadbb89546f38ad69e960e64e7ba682012a95", 2_178),
            "German.txt": ("7449cd590b97a733e18d613a4155decd77ec35dc5f8aadd7a82204dce4f051db", 5_610),
            "Greek.txt": ("3555b5186de7f401e6d991b088e9e644ca3099116477818c25ab5793801389e6", 1_981),
            "Irish.txt": ("cf8c7013256252a88d2503127b87282a11f21b2ff6db1bded68834c19a1ec058", 1_858),
            "Italian.txt": ("f88414c27d0606a11a678b4859277828c2565d6cc4d9ee932deef6e94f3b35e4", 5_657),
            "Japanese.txt": ("e0e717e114fec3e7eade4d9dabe0067c475f43147e36a22b47902ee76ad9e67f", 7_622),
            "Korean.txt": ("cd54221ccb362a6cba4c78828838cf3268a0e59744767a37cf6ec4b74036b136", 423),
            "Polish.txt": ("45bab898af2f60ed3a728bbf6980e28821011a7caa53227553b5785903a40826", 1_165),
            "Portuguese.txt": ("50a8735f41f4f73757c8ce5b16cb0275cd86b2b214bcbc8c9805f508cb131c53", 554),
            "Russian.txt": ("0cfe53ac18041e8f63666aa77313e0a3ff378facb132abee052d8ebdc8c3d62c", 85_168),
            "Scottish.txt": ("78d0252711d87d948ea86fe34826c51d2d794a8e52d15b5d6f7b6244d45d62dd", 752),
            "Spanish.txt": ("1bcb462ed3316756a85781d68232bddae04498fdddd5d9219c53fd1fbdeba7a7", 2_284),
            "Vietnamese.txt": ("f3f9e4164ab47601178a6e45b216464a64122f49d05541f24bf18a757253281d", 339),
        },
    ),
    Source(
        "qqp_small",
        "gpoesia/minbert-default-final-project/7ac8260577fc12a86c7aaf38918056c30054ef39/data",
        {
            "quora-dev.csv": ("bfa3cc954a9ba300ae776a980141de65f622a3c1b97e3fd905d63245bc36d5ad", 3_205_321),
        },
    ),
    Source(
        "rte",
        "marcwww/nlu_eval/ccd55c37de74ebd86c70ae58f67dceb0aa444f43/data/RTE",
        {
            "dev.tsv": ("80230dfa1347282e7b532b06a1004a76a710087541189bf874223ddf0e3819fb", 90_343),
            "train.tsv": ("81d25e323e1ab5b2ad7cd445f1a69db89f2b1c104f3e26915a9421aa4a5f4735", 846_227),
        },
    ),
    Source(
        "sick",
        "brmson/dataset-sts/e1d3375f5b3bc24f21aa4e46f96eb379e9fc1081/data/sts/sick2014",
        {
            "SICK_test_annotated.txt": ("2b8aa806658d6fc23c6824c83776c2d4fee7556000817b5ec0f982861413b7d0", 559_979),
            "SICK_train.txt": ("266cf8047149bd1d68138dd30439f3122bff30069740ac6705bb6197d9f1b48e", 506_243),
            "SICK_trial.txt": ("5a88cfb62f8c6bd2a3cce0f2421ba2cb8c2be5ab4a800f6f01e2c64aafb7db56", 57_225),
        },
    ),
    Source(
        "snips",
        "MiuLab/SlotGated-SLU/61f0307c729b1fad479ef1de94aa5ac5dee601b0/data/snips",
        {
            "test.label": ("37a26da3ad079bb41c42c85a3a8f827eb47efec4c5917ce5d08f4b2736e4f830", 10_120),
            "test.seq.in": ("c1e341173fcea2951a8ca371956a6f81c76de87b9583c62eb87edd6158fa3a7c", 33_121),
            "test.seq.out": ("58c07c9097d5e1f78889765c2a535a160f6455b90b3142055c8051847afcca47", 50_918),
            "train.label": ("bfd7df6cf9dd76c5da5d8b61bc85f90386197bdd3d7510c1d324c051537b962f", 184_532),
            "train.seq.in": ("04ad1e3f2121d83c6478f9a4b17d2dbdc21d06d6127f73cb7af835ed733f9855", 617_079),
            "train.seq.out": ("fd5f2121d8055827e5d6b3d3bac30f3d7e94e82a5d437751960cbdd9e1b4f6d3", 950_926),
            "valid.label": ("9c1dd041216f647bcfca838aaf1a48eb5781e4404256d31ff07cd38a5436c52f", 9_900),
            "valid.seq.in": ("64e0f6d8ad8aab3a3828164d7d53731a0993d3ca1aed437ceaca6d3d568d410e", 33_629),
            "valid.seq.out": ("712e6d34feb8d52d208b820a5f8bae6e6ff990f08374507dfde22de389088319", 50_626),
        },
        nested=True,
    ),
    Source(
        "snli",
        "",
        {
            "snli_1.0_dev.tsv": ("c561d295d40b0b3af57b3bce4d3db4cc7ed3d5a1887451d4d42b338f93aff56c", 1_948_696),
            "snli_1.0_test.tsv": ("8b55ae2b05a80e51bfb0b96fb2a7e3a2ea4d13059304f946c212412c209b68ee", 1_945_478),
        },
    ),
    Source(
        "sst2",
        "clairett/pytorch-sentiment-classification/457ffd83de90a9d6d472d8ffc31bbffe40a8b236/data/SST2",
        {
            "dev.tsv": ("eddea6b39e601dd4e7a672b53cc40fdf6019fa80522f351206c24340ca5d9359", 92_057),
            "test.tsv": ("831169c7e2e429d6026e1bdbb542f33b636e3e596caad9602ebc953c205928b7", 188_749),
            "train.tsv": ("ec192f833a64da08f475488a77b0d0b47db47acd0f458bd18433fc793b569920", 720_259),
        },
    ),
    Source(
        "sst5",
        "gpoesia/minbert-default-final-project/7ac8260577fc12a86c7aaf38918056c30054ef39/data",
        {
            "ids-sst-dev.csv": ("a186ce94577635fbe10beaaddd50f16cccf6c30973221cefdf90deed2a584bfe", 151_384),
            "ids-sst-train.csv": ("03b2b625c090f94a6afd59f114cde5282e2053aab0b101e87ed695d8a0c5b1df", 1_175_139),
        },
    ),
    Source(
        "stsb",
        "gpoesia/minbert-default-final-project/7ac8260577fc12a86c7aaf38918056c30054ef39/data",
        {
            "sts-dev.csv": ("ce3cad6f16062586ac7ba462c28b010a9be10c530fd5074165860d7b7ab4e93d", 132_265),
            "sts-train.csv": ("15d12efc2d656fffb1d61ac1f08ec4227f43925fd16f420c037cbd063699c21b", 928_832),
        },
    ),
    Source(
        "ud_english_ewt",
        "UniversalDependencies/UD_English-EWT/15d613d8447b3478787d4c278730a1e48a945efb",
        {
            "en_ewt-ud-dev.conllu": ("531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6", 1_805_545),
            "en_ewt-ud-test.conllu": ("e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd", 1_804_515),
            "en_ewt-ud-train.conllu": ("3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b", 14_203_025),
        },
    ),
    Source(
        "wikiann_en",
        "davidsbatista/NER-datasets/db7ff3ca4ba1df39907f8bdc036a556fed5ecde7/WikiANN/en",
        {
            "dev": ("e9e42f79be5eba498ac86b7b81612da5ec5ad3d194df25c2e474514434957cf4", 1_002_261),
            "test": ("798706360692e56b9ce72fe37033c581cc9801b18f22091100b8266e0dc7fccb", 1_000_256),
            "train": ("ca569a937f536cfc7e94291fbf631d394ce0c171af4523d96f366a50bd18b388", 1_994_834),
        },
    ),
    Source(
        "wnut17",
        "leondz/emerging_entities_17/e52a2d2a71ac1a051ca2d532eef28653c5c02603",
        {
            "dev.conll": ("e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8", 114_749),
            "test.conll": ("2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0", 192_425),
            "train.conll": ("731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5", 493_781),
        },
        renamed={
            "dev.conll": "emerging.dev.conll",
            "test.conll": "emerging.test.annotated",
            "train.conll": "wnut17train.conll",
        },
    ),
    Source(
        "nltk",
        "nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28/packages/corpora",
        {
            "brown.zip": ("9b275f9b3b95d7bd66ccfb7cd259f445a13bbe5d1f4107aba09fd3e8364bafa6", 3_314_357),
            "conll2000.zip": ("01e65164f268366e7caa0db92332a1955d081908c87016e2c7640c3c5279b7cd", 756_607),
            "qc.zip": ("091fb01e50883014d150acb7d5013d787136968b3f955ae01725a65e7e80f304", 125_456),
            "subjectivity.zip": ("741f3371e1a4375051b874fd82fd55857b90975473c91c19a3101cbe17fc4d8c", 521_628),
        },
    ),
]
FILES = {file.path: file for source in SOURCES for file in source.public_files()}
NAMES = "names_by_nationality/"


def _labels(title: str, licence: str, how_to_get: str = "", **paths: str) -> PublicData:
    return _row("labels", title, licence, how_to_get, paths)


def _tags(title: str, licence: str, **paths: str) -> PublicData:
    return _row("tags", title, licence, "", paths)


def _row(
    holds: Literal["labels", "tags"], title: str, licence: str, how_to_get: str, paths: dict[str, str]
) -> PublicData:
    what = {"labels": "Labels", "tags": "Tags"}[holds]
    files = {part: FILES[path] for part, path in paths.items()}
    return PublicData(f"{what}: {title}", licence, files, holds=holds, how_to_get=how_to_get)


def _slots(name: str) -> dict[str, str]:
    """Words, tags and labels of each part."""
    kinds = {"words": "seq.in", "tags": "seq.out", "labels": "label"}
    parts = ("train", "valid", "test")
    return {f"{part}_{kind}": f"{name}/{part}.{file}" for part in parts for kind, file in kinds.items()}


ANNOTATED = {
    "sst2": _labels(
        "9,613 sentences of film reviews, good (1) or bad (0); Stanford Sentiment Treebank without its phrases",
        "none stated",
        train="sst2/train.tsv",
        valid="sst2/dev.tsv",
        test="sst2/test.tsv",
    ),
    "sst5": _labels(
        "9,645 sentences of film reviews, from very bad (0) to very good (4); its dev part tests",
        "none stated",
        train="sst5/ids-sst-train.csv",
        test="sst5/ids-sst-dev.csv",
    ),
    "imdb": _labels(
        "47,963 film reviews, good (1) or bad (0)",
        "research use",
        how_to_get="write the reviews of ai.stanford.edu/~amaas/data/sentiment there as label, rating and text, with "
        "TABs between, below a header",
        train="imdb/train.tsv",
        test="imdb/test.tsv",
    ),
    "ag_news": _labels(
        "12,600 pieces of news: World, Sports, Business, Sci/Tech; 5,000 to train on",
        "non-commercial",
        how_to_get="write rows of the AG corpus there as label and text, in quotes with commas between",
        train="ag_news/train_5000.csv",
        test="ag_news/test.csv",
    ),
    "movie_review_polarity": _labels(
        "2,000 film reviews, pos or neg (Pang & Lee 2004)",
        "none stated",
        train="movie_review_polarity/review_polarity.tar",
    ),
    "subjectivity": _labels(
        "10,000 sentences of plots (objective) and reviews (subjective)", "CC BY 4.0", train="nltk/subjectivity.zip"
    ),
    "qc": _labels("5,952 questions, of 6 kinds of answers (TREC); qc:fine has 50", "none stated", train="nltk/qc.zip"),
    "cola": _labels(
        "9,594 sentences, acceptable (1) or not (0); both dev parts test",
        "research use",
        train="cola/in_domain_train.tsv",
        test="cola/in_domain_dev.tsv",
        test_other="cola/out_of_domain_dev.tsv",
    ),
    "mrpc": _labels(
        "5,801 pairs of sentences, paraphrases (1) or not (0)",
        "Microsoft Research",
        train="mrpc/msr-para-train.tsv",
        valid="mrpc/msr-para-val.tsv",
        test="mrpc/msr-para-test.tsv",
    ),
    "rte": _labels(
        "2,767 pairs of sentences, entailment or not; its dev part tests",
        "GLUE",
        train="rte/train.tsv",
        test="rte/dev.tsv",
    ),
    "sick": _labels(
        "9,927 pairs of sentences: entailment, neutral, contradiction; sick:number is how related they are, 1 to 5",
        "CC BY-NC-SA 3.0",
        train="sick/SICK_train.txt",
        valid="sick/SICK_trial.txt",
        test="sick/SICK_test_annotated.txt",
    ),
    "snli": _labels(
        "20,000 pairs of sentences: entailment, neutral, contradiction; its dev part trains",
        "CC BY-SA 4.0",
        how_to_get="write columns of nlp.stanford.edu/projects/snli there: gold_label, sentence1, sentence2, with TABs "
        "between, below a header",
        train="snli/snli_1.0_dev.tsv",
        test="snli/snli_1.0_test.tsv",
    ),
    "stsb": _labels(
        "6,903 pairs of sentences and how similar they are, 0 to 5; its dev part tests",
        "none stated",
        train="stsb/sts-train.csv",
        test="stsb/sts-dev.csv",
    ),
    "qqp_small": _labels(
        "20,214 pairs of questions, the same (1) or not (0)", "Quora: non-commercial", train="qqp_small/quora-dev.csv"
    ),
    "names-nationality": _labels(
        "20,050 family names of 18 languages",
        "MIT",
        **{path.removeprefix(NAMES).removesuffix(".txt"): path for path in FILES if path.startswith(NAMES)},
    ),
    "ud-ewt": _tags(
        "16,622 sentences of the English web, parts of speech (UPOS); ud-ewt:xpos has finer ones",
        "CC BY-SA 4.0",
        train="ud_english_ewt/en_ewt-ud-train.conllu",
        valid="ud_english_ewt/en_ewt-ud-dev.conllu",
        test="ud_english_ewt/en_ewt-ud-test.conllu",
    ),
    "conll2003": _tags(
        "20,744 sentences of news: people, places, organisations, others; also conll2003:pos, conll2003:chunk",
        "Reuters: research use",
        train="conll2003/eng.train",
        valid="conll2003/eng.testa",
        test="conll2003/eng.testb",
    ),
    "wnut17": _tags(
        "5,690 sentences of the noisy web, six kinds of new and rare entities",
        "CC BY 4.0",
        train="wnut17/train.conll",
        valid="wnut17/dev.conll",
        test="wnut17/test.conll",
    ),
    "wikiann": _tags(
        "40,000 pieces of English Wikipedia, people, places, organisations, marked by links",
        "none stated",
        train="wikiann_en/train",
        valid="wikiann_en/dev",
        test="wikiann_en/test",
    ),
    "brown": _tags(
        "57,340 sentences of all kinds, parts of speech (Brown corpus)", "non-commercial", train="nltk/brown.zip"
    ),
    "conll2000": _tags(
        "10,948 sentences of news, chunks; conll2000:pos has parts of speech", "none stated", train="nltk/conll2000.zip"
    ),
    "atis": _tags(
        "5,871 questions on flights, slots and what is asked for", "LDC original; none stated", **_slots("atis")
    ),
    "snips": _tags("14,484 orders to an assistant, slots and what is asked for", "CC0", **_slots("snips")),
}
